import { describe, expect, test } from 'vitest';
import type { Chart, Effect } from '../../../src/lib/statechart/chart.ts';
import { ChartNode } from '../../../src/lib/statechart/chart-node.ts';
import { RunningChart } from '../../../src/lib/statechart/running-chart.ts';
import { SimulatedTimers } from '../../support/simulated-timers.ts';

type Types = {
  readonly context: { readonly steps: readonly string[]; readonly count: number };
  readonly event:
    | { readonly type: 'go' }
    | { readonly type: 'stay' }
    | { readonly type: 'add'; readonly amount: number };
  readonly command: string;
  readonly result: string;
  readonly delay: 'short' | 'long';
};

const delays = { short: () => 100, long: ({ count }: Types['context']) => 1_000 * count };

/** Notes that it was here. */
const note =
  (what: string): Effect<Types> =>
  ({ machine }) =>
    machine.assign(({ steps }) => ({ steps: [...steps, what] }));

function run(
  chart: Omit<Chart<Types>, 'delays'>,
  obey: (command: string, running: RunningChart<Types>) => void = () => undefined,
) {
  const timers = new SimulatedTimers();
  const log: string[] = [];
  const running: RunningChart<Types> = new RunningChart(ChartNode.of({ delays, ...chart }), {
    context: { steps: [], count: 1 },
    timers,
    partner: {
      open: () => void log.push('open'),
      obey: (command) => {
        log.push(command);
        obey(command, running);
      },
      close: () => void log.push('close'),
    },
    onDone: () => void log.push('done'),
    onFailed: (error) => void log.push(String(error)),
  });
  running.start();
  return { running, timers, log, steps: () => running.context.steps };
}

const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

describe('a statechart', () => {
  test('begins in its initial state, the innermost one, outer entries first', () => {
    const { running, steps, log } = run({
      entry: note('chart'),
      initial: 'outer',
      states: {
        outer: {
          entry: [note('outer'), note('outer again')],
          initial: 'inner',
          states: { inner: { entry: note('inner') } },
        },
      },
    });

    expect(running.state).toBe('outer.inner');
    expect(steps()).toEqual(['chart', 'outer', 'outer again', 'inner']);
    expect(log).toEqual(['open']);
  });

  test('follows the first transition whose guard holds: effects, then the entry of its target', () => {
    const { running, steps } = run({
      initial: 'one',
      states: {
        one: {
          on: {
            go: [
              { guard: ({ context }) => context.count > 1, target: 'three' },
              { target: 'two', actions: [note('went'), note('on')] },
              { target: 'three' },
            ],
          },
        },
        two: { entry: note('two') },
        three: {},
      },
    });

    running.send({ type: 'go' });

    expect(running.state).toBe('two');
    expect(steps()).toEqual(['went', 'on', 'two']);
  });

  test('has guards and effects see the event, and effects each other’s changes', () => {
    const add: Effect<Types> = ({ context, event, machine }) => {
      if (event.type === 'add') machine.assign({ count: context.count + event.amount });
    };
    const { running } = run({
      initial: 'one',
      states: {
        one: { on: { add: { guard: ({ event }) => event.amount > 0, actions: [add, add] } } },
      },
    });

    running.send({ type: 'add', amount: -5 });
    running.send({ type: 'add', amount: 2 });

    expect(running.context.count).toBe(5);
  });

  test('leaves an event that a state has nothing for to the one around it, and what none has alone', () => {
    const { running, steps } = run({
      on: { add: { actions: note('chart') } },
      initial: 'outer',
      states: {
        outer: {
          on: { stay: { actions: note('outer') } },
          initial: 'inner',
          states: {
            inner: {
              on: { stay: { guard: ({ context }) => context.count > 1, actions: note('no') } },
            },
          },
        },
      },
    });

    running.send({ type: 'stay' });
    running.send({ type: 'add', amount: 1 });
    running.send({ type: 'go' });

    expect(running.state).toBe('outer.inner');
    expect(steps()).toEqual(['outer', 'chart']);
  });

  test('goes on by transitions that need no event, as far as they lead', () => {
    const { running, log } = run({
      initial: 'one',
      states: {
        one: { on: { go: { target: 'two' } } },
        two: { always: { guard: ({ context }) => context.count === 1, target: 'three' } },
        three: {
          always: [
            { guard: ({ context }) => context.count === 2, target: 'one' },
            { target: 'four' },
          ],
        },
        four: {},
      },
    });

    running.send({ type: 'go' });

    expect(running.state).toBe('four');
    expect(log).toEqual(['open']);
  });

  test('fails where these go round in a circle', () => {
    const { running, log } = run({
      initial: 'one',
      states: { one: { always: { target: 'two' } }, two: { always: { target: 'one' } } },
    });

    expect(running.status).toBe('failed');
    expect(log).toEqual(['close', expect.stringContaining('does not come to rest')]);
  });

  test('gives commands away at rest, in their order; what is sent meanwhile waits for its turn', () => {
    const { running, steps, log } = run(
      {
        initial: 'one',
        states: {
          one: {
            on: {
              go: {
                target: 'two',
                actions: ({ machine }) => {
                  machine.command('first');
                  machine.perform(note('between'));
                  machine.command('second');
                },
              },
            },
          },
          two: { entry: note('two'), on: { stay: { actions: note('stayed') } } },
        },
      },
      (command, chart) => {
        if (command === 'first') chart.send({ type: 'stay' });
        if (chart.context.steps.includes('stayed')) log.push('too early');
      },
    );

    running.send({ type: 'go' });

    expect(log).toEqual(['open', 'first', 'second']);
    expect(steps()).toEqual(['between', 'two', 'stayed']);
  });

  test('a time-out counts from when its state was entered, and is over with it', () => {
    const { running, timers, steps } = run({
      initial: 'outer',
      states: {
        outer: {
          after: { long: { target: 'late' } },
          initial: 'one',
          states: {
            one: { after: { short: { actions: note('short') } }, on: { go: { target: 'two' } } },
            two: { on: { stay: { target: 'two' } }, after: { short: { target: 'three' } } },
            three: {},
          },
        },
        late: {},
      },
    });

    timers.advance(99);
    running.send({ type: 'go' });
    timers.advance(99);
    running.send({ type: 'stay' });
    timers.advance(99);
    expect(running.state).toBe('outer.two');
    timers.advance(1);
    expect(running.state).toBe('outer.three');
    timers.advance(701);
    expect(running.state).toBe('outer.three');
    timers.advance(1);
    expect(running.state).toBe('late');
    expect(steps()).toEqual([]);
  });

  test('waits for what a state invokes; its result, or its failure, leads on', async () => {
    const waiting = (outcome: Promise<string>): Omit<Chart<Types>, 'delays'> => ({
      initial: 'one',
      states: {
        one: {
          invoke: {
            run: () => outcome,
            onDone: [
              { guard: ({ result }) => result === 'yes', target: 'two' },
              { target: 'three' },
            ],
            onError: { target: 'four' },
          },
        },
        ...{ two: {}, three: {}, four: {} },
      },
    });
    const charts = [Promise.resolve('yes'), Promise.resolve('no'), Promise.reject(new Error('no'))]
      .map(waiting)
      .map((chart) => run(chart).running);

    expect(charts.map(({ state }) => state)).toEqual(['one', 'one', 'one']);
    await settled();
    expect(charts.map(({ state }) => state)).toEqual(['two', 'three', 'four']);
  });

  test('what was invoked by a state that was left leads nowhere, also if it was entered anew', async () => {
    const answers: ((answer: string) => void)[] = [];
    const { running } = run({
      initial: 'one',
      states: {
        one: {
          invoke: {
            run: () => new Promise((resolve) => void answers.push(resolve)),
            onDone: { target: 'two' },
            onError: { target: 'two' },
          },
          on: { stay: { target: 'one' } },
        },
        two: {},
      },
    });

    running.send({ type: 'stay' });
    answers[0]?.('late');
    await settled();
    expect(running.state).toBe('one');
    answers[1]?.('in time');
    await settled();
    expect(running.state).toBe('two');
  });

  test('ends in a final state: its partner is closed, and nothing comes of what is sent', () => {
    const { running, timers, log, steps } = run({
      on: { stay: { actions: note('no more') } },
      after: { short: { actions: note('no more') } },
      initial: 'one',
      states: {
        one: { on: { go: { target: 'over', actions: ({ machine }) => machine.command('last') } } },
        over: { final: true },
      },
    });

    running.send({ type: 'go' });
    running.send({ type: 'stay' });
    timers.advance(1_000);

    expect(running.status).toBe('done');
    expect(log).toEqual(['open', 'last', 'close', 'done']);
    expect(steps()).toEqual([]);
  });

  test('is stopped anywhere, without a word', () => {
    const { running, timers, log, steps } = run({
      initial: 'one',
      states: { one: { after: { short: { actions: note('no more') } } } },
    });

    running.stop();
    running.stop();
    timers.advance(1_000);

    expect(running.status).toBe('stopped');
    expect(log).toEqual(['open', 'close']);
    expect(steps()).toEqual([]);
  });

  test('fails with an effect, or a partner, that throws: the partner is closed', () => {
    const chart = (effect: Effect<Types>): Omit<Chart<Types>, 'delays'> => ({
      initial: 'one',
      states: { one: { on: { go: { actions: effect } } } },
    });
    const own = run(
      chart(() => {
        throw new Error('a defect');
      }),
    );
    const partners = run(
      chart(({ machine }) => machine.command('what it cannot')),
      () => {
        throw new Error('a defect');
      },
    );
    own.running.send({ type: 'go' });
    partners.running.send({ type: 'go' });

    expect(own.log).toEqual(['open', 'close', 'Error: a defect']);
    expect(partners.log).toEqual(['open', 'what it cannot', 'close', 'Error: a defect']);
    expect([own.running.status, partners.running.status]).toEqual(['failed', 'failed']);
  });

  test('is refused where a target is not there', () => {
    const chart: Omit<Chart<Types>, 'delays'> = {
      initial: 'one',
      states: { one: { on: { go: { target: 'nowhere' } } } },
    };

    expect(() => run(chart)).toThrow('no state nowhere');
  });
});
