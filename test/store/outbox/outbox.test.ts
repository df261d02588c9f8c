// How the outbox folds, orders and retries steps. The test plays the database.
// `call-appends.test.ts` tests the statement.

import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { AcceptedCall } from '../../../src/calls/call-types.ts';
import {
  answeredEvent,
  type CallProgress,
  dialingEvent,
  endEvent,
  nextEvent,
  progressOfAccepted,
  ringingEvent,
} from '../../../src/calls/life/call-events.ts';
import { endOfMachine, endOfRingTimeout } from '../../../src/calls/life/call-outcome.ts';
import type { CallStep } from '../../../src/calls/life/call-step.ts';
import type { StepResult } from '../../../src/calls/ports.ts';
import type { AppendedStep, WaitingStep } from '../../../src/store/outbox/call-appends.ts';
import { Outbox } from '../../../src/store/outbox/outbox.ts';
import { acceptedCall, storedLeg } from '../../support/call-records.ts';
import { settled } from '../../support/dialout-world.ts';
import { eventually } from '../../support/eventually.ts';
import { recordedLogger } from '../../support/recorded-logger.ts';

const at = new Date('2026-03-01T12:00:00.000Z');

/** The steps that a machine appends one after the other. */
function stepsOf(call: AcceptedCall = acceptedCall()) {
  const accepted = progressOfAccepted(call);
  const { event: dialing, ...afterDialing } = dialingEvent(accepted, at, 'gw');
  const rang: CallProgress = { ...accepted, ...afterDialing, ringingAt: at };
  const { event: ringing, ...afterRinging } = ringingEvent(rang, at, {
    ...{ sipStatus: 180, sipReason: 'Ringing', earlyMedia: false },
  });
  const before: CallProgress = { ...rang, ...afterRinging };
  const { event: answered, ...sequences } = answeredEvent({ ...before, answeredAt: at });
  const after = { ...before, ...sequences, answeredAt: at };
  const { event: failed } = endEvent(before, endOfRingTimeout(at));
  const { event: completed } = endEvent(after, endOfMachine(at));
  const { event: optedOut } = nextEvent(after, 'opted-out', at, { by: 'key', source: 'key 9' });
  const dialog = { ...storedLeg, dialogId: 'dialog-1' };
  return {
    call,
    dialing: { events: [dialing], leg: storedLeg },
    ringing: { events: [ringing], ringingAt: at },
    answer: { events: [answered], answeredAt: at, leg: dialog },
    optOut: { events: [optedOut] },
    failed: { events: [], ending: { event: failed } },
    completed: { events: [], ending: { event: completed } },
    doubted: { events: [], ending: { event: failed, ifAnswered: [answered, completed] } },
  } satisfies Record<string, CallStep | AcceptedCall>;
}

const isStored = ({ step }: WaitingStep): AppendedStep => ({
  kind: 'stored',
  events: step.events,
  owed: [],
  storedAt: at,
  isQueuedPublished: true,
  isNewQueue: false,
});
const away = () => Object.assign(new Error('SQL is unreachable'), { code: 'ECONNREFUSED' });
const refusal = (code: string) => Object.assign(new Error('refused'), { code });

class Statement {
  readonly steps: readonly WaitingStep[];
  readonly #resolve: (appended: readonly AppendedStep[]) => void;
  readonly fail: (error: Error) => void;

  constructor(
    steps: readonly WaitingStep[],
    resolve: (appended: readonly AppendedStep[]) => void,
    fail: (error: Error) => void,
  ) {
    this.steps = steps;
    this.#resolve = resolve;
    this.fail = fail;
  }

  store(result: (step: WaitingStep) => AppendedStep = isStored): void {
    this.#resolve(this.steps.map(result));
  }

  /** A text for each step, to compare with. */
  summary(): readonly string[] {
    return this.steps.map(({ step, isRepeated }) => {
      const types = step.events.map(({ type }) => type);
      const end = step.ending === undefined ? [] : [`end: ${step.ending.event.type}`];
      return [...types, ...end, ...(isRepeated ? ['(again)'] : [])].join(' ');
    });
  }
}

/** Refuses the call's events, but not its end alone. */
const isBad = (bad: AcceptedCall) => (statement: Statement) => {
  const hasBad = statement.steps.some(
    ({ call, step }) => call.callId === bad.callId && step.events.length > 0,
  );
  if (hasBad) statement.fail(refusal('22P05'));
  else statement.store();
};

type Script = (statement: Statement) => void;

/** `script` decides the result of each statement. Default: the test decides. */
function rig(script: Script = () => undefined) {
  const { logger, lines } = recordedLogger();
  const statements: Statement[] = [];
  const reported: { readonly types: readonly string[]; readonly how: object }[] = [];
  const outbox = new Outbox({
    append: (steps) =>
      new Promise((resolve, reject) => {
        const statement = new Statement(steps, resolve, reject);
        statements.push(statement);
        script(statement);
      }),
    onStored: (_call, { events }, how) =>
      void reported.push({ types: events.map((e) => e.type), how }),
    logger,
  });
  onTestFinished(() => outbox.stop(0));
  const statement = async (number: number): Promise<Statement> => {
    await eventually(() => statements.length >= number, `statement ${number}`);
    return statements[number - 1] as Statement;
  };
  return { outbox, statements, statement, reported, lines };
}

describe('steps on their way into SQL', () => {
  test('share a statement if they come close together', async () => {
    const { outbox, statements, reported } = rig((statement) => statement.store());
    const [one, other] = [stepsOf(), stepsOf()];
    const results = await Promise.all([
      outbox.append(one.call, one.dialing),
      outbox.append(other.call, other.dialing),
      outbox.append(one.call, one.ringing),
    ]);

    expect(results).toEqual(['stored', 'stored', 'stored']);
    expect(statements.map((statement) => statement.summary().toSorted())).toEqual([
      ['dialing', 'dialing ringing'],
    ]);
    expect(reported).toHaveLength(2);
  });

  test('are folded into one step while a statement of their call is under way', async () => {
    const { outbox, statements, statement } = rig();
    const { call, dialing, ringing, failed } = stepsOf();
    const first = outbox.append(call, dialing);
    const underWay = await statement(1);
    const later = [outbox.append(call, ringing), outbox.append(call, failed)];
    await settled();
    expect(statements).toHaveLength(1);

    underWay.store();
    (await statement(2)).store();
    expect(await Promise.all([first, ...later])).toEqual(['stored', 'stored', 'stored']);
    expect(statements.map((each) => each.summary())).toEqual([
      ['dialing'],
      ['ringing end: failed'],
    ]);
  });

  test('do not overtake a statement that is under way for another call', async () => {
    const { outbox, statements, statement } = rig();
    const [one, other] = [stepsOf(), stepsOf()];
    void outbox.append(one.call, one.dialing);
    const underWay = await statement(1);
    const answer = outbox.append(other.call, other.answer);
    await settled();
    expect(statements).toHaveLength(1);

    underWay.store();
    (await statement(2)).store();
    expect(await answer).toBe('stored');
  });

  test('are reported to `onStored`, with the options of their appenders', async () => {
    const { outbox, reported } = rig((statement) => statement.store());
    const [one, other] = [stepsOf(), stepsOf()];
    await outbox.append(one.call, one.dialing);
    await outbox.append(other.call, other.dialing, { isRepeated: true, isRecovered: true });

    expect(reported).toEqual([
      { types: ['dialing'], how: { isUntaken: false, isRepeated: false, isRecovered: false } },
      { types: ['dialing'], how: { isUntaken: false, isRepeated: true, isRecovered: true } },
    ]);
  });

  test('keep the options of every folded step', async () => {
    const { outbox, statements, reported } = rig((statement) => statement.store());
    const { call, dialing, failed } = stepsOf();
    const owing = { isRepeated: true, isRecovered: true };
    await Promise.all([outbox.append(call, dialing), outbox.append(call, failed, owing)]);

    expect(statements[0]?.steps).toMatchObject([{ isRepeated: true, isUntaken: false }]);
    expect(reported).toMatchObject([{ how: owing }]);
  });

  test('are marked if no process has taken their call', async () => {
    const { outbox, statements } = rig((statement) => statement.store());
    const { call, failed } = stepsOf();
    await outbox.append(call, failed, { isUntaken: true });

    expect(statements[0]?.steps).toMatchObject([{ isUntaken: true, isRepeated: false }]);
  });

  test('are held until they are stored', async () => {
    const { outbox, statement } = rig();
    const { call, dialing } = stepsOf();
    const stored = outbox.append(call, dialing);
    expect([outbox.holds(call.callId), outbox.size()]).toEqual([true, 1]);
    const underWay = await statement(1);
    expect([outbox.holds(call.callId), outbox.size()]).toEqual([true, 1]);
    underWay.store();
    await stored;

    expect([outbox.holds(call.callId), outbox.size()]).toEqual([false, 0]);
  });

  test.each(['not owned', 'contradicted'] as const)(
    'are not reported if the call no longer belongs to this process (%s)',
    async (kind) => {
      const { outbox, reported, lines } = rig((statement) => statement.store(() => ({ kind })));
      const { call, dialing, ringing } = stepsOf();

      expect(
        await Promise.all([outbox.append(call, dialing), outbox.append(call, ringing)]),
      ).toEqual(['not owned', 'not owned']);
      expect(reported).toEqual([]);
      expect(lines).toMatchObject([{ callId: call.callId, why: kind }]);
    },
  );
});

describe('an answer', () => {
  afterEach(() => void vi.useRealTimers());

  test('is sent immediately, together with the waiting steps', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const { outbox, statements } = rig((statement) => statement.store());
    const [one, other] = [stepsOf(), stepsOf()];
    void outbox.append(one.call, one.dialing);
    void outbox.append(one.call, one.ringing);
    void outbox.append(other.call, other.dialing);
    await settled();
    expect(statements).toEqual([]);

    expect(await outbox.append(one.call, one.answer)).toBe('stored');
    expect(statements.map((each) => each.summary().toSorted())).toEqual([
      ['dialing', 'dialing ringing answered'],
    ]);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(statements).toHaveLength(1);
  });

  test('goes first if more steps wait than a statement takes', async () => {
    const { outbox, statements, statement } = rig();
    const first = stepsOf();
    void outbox.append(first.call, first.dialing);
    const underWay = await statement(1);
    const dialling = Array.from({ length: 300 }, () => stepsOf());
    for (const { call, dialing } of dialling) void outbox.append(call, dialing);
    const answers = [stepsOf(), stepsOf(), stepsOf()];
    for (const { call, answer } of answers) void outbox.append(call, answer);
    underWay.store();
    (await statement(2)).store();
    (await statement(3)).store();
    await eventually(() => outbox.size() === 0, 'all is stored');

    const [, second, third] = statements.map(({ steps }) => steps.map(({ call }) => call.callId));
    expect(second?.slice(0, 3)).toEqual(answers.map(({ call }) => call.callId));
    // The other steps follow in the order in which they came.
    expect([...(second?.slice(3) ?? []), ...(third ?? [])]).toEqual(
      dialling.map(({ call }) => call.callId),
    );
    expect(third?.length).toBeGreaterThan(0);
  });

  test('that is given up while under way: SQL decides whether the call was answered', async () => {
    const { outbox, statements, statement } = rig();
    const { call, dialing, answer, doubted } = stepsOf();
    const appended = [outbox.append(call, dialing), outbox.append(call, answer)];
    const underWay = await statement(1);
    appended.push(outbox.append(call, doubted));
    underWay.fail(away());
    (await statement(2)).store();

    expect(await Promise.all(appended)).toEqual(['stored', 'stored', 'stored']);
    expect(statements.map((each) => each.summary())).toEqual([
      ['dialing answered'],
      ['dialing end: failed (again)'],
    ]);
    const [again] = statements[1]?.steps ?? [];
    expect(again?.step).not.toHaveProperty('answeredAt');
    expect(again?.step.ending?.ifAnswered?.map(({ type }) => type)).toEqual([
      'answered',
      'completed',
    ]);
  });
});

describe('while SQL is unreachable', () => {
  test('failed steps are retried before later ones, and marked as repeated', async () => {
    const { outbox, statements, statement, reported } = rig();
    const [one, other] = [stepsOf(), stepsOf()];
    const appended = [outbox.append(one.call, one.dialing)];
    const underWay = await statement(1);
    appended.push(outbox.append(one.call, one.ringing), outbox.append(other.call, other.dialing));
    underWay.fail(away());
    const again = await statement(2);
    again.fail(away());
    (await statement(3)).store();

    expect(await Promise.all(appended)).toEqual(['stored', 'stored', 'stored']);
    expect(again.summary().toSorted()).toEqual(['dialing', 'dialing ringing (again)']);
    expect(statements[2]?.summary().toSorted()).toEqual([
      'dialing (again)',
      'dialing ringing (again)',
    ]);
    expect(reported.map(({ how }) => how)).toMatchObject([
      { isRepeated: true },
      { isRepeated: true },
    ]);
  });

  test('an answer does not wait for the next retry', async () => {
    let isAway = true;
    const { outbox, statements } = rig((statement) => {
      if (isAway) statement.fail(away());
      else statement.store();
    });
    const [waiting, answered] = [stepsOf(), stepsOf()];
    outbox.append(waiting.call, waiting.dialing).catch(() => undefined);
    // The pause between attempts has grown to more than a second.
    await eventually(() => statements.length >= 6, 'six tries');
    isAway = false;
    const tries = statements.length;

    await outbox.append(answered.call, answered.answer);

    expect(statements).toHaveLength(tries + 1);
    expect(statements.at(-1)?.steps).toHaveLength(2);
  });

  test('the end of a call is retried unchanged', async () => {
    const { outbox, statements } = rig((statement) =>
      statements.length < 3 ? statement.fail(away()) : statement.store(),
    );
    const { call, completed } = stepsOf();

    expect(await outbox.append(call, completed)).toBe('stored');
    expect(statements.map(({ steps }) => steps[0]?.step)).toEqual([
      completed,
      completed,
      completed,
    ]);
  });

  test.each(['42P01', '53100', '57014', '40003', 'XX000'])(
    'or reports an internal fault (%s), no step is given up',
    async (code) => {
      const { outbox, statements } = rig((statement) =>
        statements.length === 1 ? statement.fail(refusal(code)) : statement.store(),
      );
      const { call, dialing } = stepsOf();

      expect(await outbox.append(call, dialing)).toBe('stored');
    },
  );

  test('steps wait up to a bound; more are refused until there is room', async () => {
    const { outbox, statement } = rig();
    const [one, other, third] = [stepsOf(), stepsOf(), stepsOf()];
    const [event] = one.dialing.events;
    if (event === undefined) throw new Error('no event');
    const most = outbox.append(one.call, { events: Array(99_999).fill(event) });
    const last = outbox.append(other.call, other.dialing);
    await expect(outbox.append(third.call, third.dialing)).rejects.toThrow('wait for it');
    await expect(outbox.append(other.call, other.doubted)).rejects.toThrow('wait for it');
    expect(outbox.holds(third.call.callId)).toBe(false);

    (await statement(1)).store();
    expect(await Promise.all([most, last])).toEqual(['stored', 'stored']);
    const later = outbox.append(third.call, third.dialing);
    (await statement(2)).store();
    expect(await later).toBe('stored');
  });

  test('retried steps count towards the bound', async () => {
    const { outbox, statement } = rig();
    const [one, other] = [stepsOf(), stepsOf()];
    const [event] = one.dialing.events;
    if (event === undefined) throw new Error('no event');
    const most = outbox.append(one.call, { events: Array(100_000).fill(event) });
    (await statement(1)).fail(away());
    await settled();
    await expect(outbox.append(other.call, other.dialing)).rejects.toThrow('wait for it');

    (await statement(2)).store();
    expect(await most).toBe('stored');
  });
});

describe('a call that makes its statement fail for an unknown reason', () => {
  test('does not hold up other calls, and is retried', async () => {
    const [bad, good] = [stepsOf(), stepsOf()];
    let isMended = false;
    const { outbox, reported } = rig((statement) => {
      const isBad = statement.steps.some(({ call }) => call.callId === bad.call.callId);
      if (isBad && !isMended) statement.fail(new Error('a defect'));
      else statement.store();
    });
    const results = [outbox.append(bad.call, bad.dialing), outbox.append(good.call, good.dialing)];

    expect(await results[1]).toBe('stored');
    expect(reported).toHaveLength(1);
    isMended = true;
    expect(await results[0]).toBe('stored');
  });

  test('does not hold up other calls even if the error does not identify it', async () => {
    const { logger, lines } = recordedLogger();
    const [first, second] = [stepsOf(), stepsOf()];
    const outbox = new Outbox({
      append: (steps) => Promise.resolve(steps.map(isStored)),
      onStored: ({ callId }) => {
        if (callId === first.call.callId) throw new Error('a defect');
      },
      logger,
    });
    onTestFinished(() => outbox.stop(0));

    const results = [first, second].map(({ call, dialing }) => outbox.append(call, dialing));

    expect(await Promise.all(results)).toEqual(['stored', 'stored']);
    expect(outbox.size()).toBe(0);
    expect(lines).toHaveLength(1);
  });
});

describe('a step whose content SQL refuses', () => {
  test.each(['22P05', '22021', '23514', '54000'])(
    'fails alone (%s): the other calls of the statement are stored',
    async (code) => {
      const calls = Array.from({ length: 9 }, () => stepsOf());
      const bad = calls[4]?.call;
      const { outbox, reported, lines } = rig((statement) =>
        statement.steps.some(({ call }) => call === bad)
          ? statement.fail(refusal(code))
          : statement.store(),
      );
      const results = await Promise.allSettled(
        calls.map(({ call, dialing }) => outbox.append(call, dialing)),
      );

      expect(results.map(({ status }) => status)).toEqual(
        calls.map(({ call }) => (call === bad ? 'rejected' : 'fulfilled')),
      );
      expect(reported).toHaveLength(8);
      expect(lines).toMatchObject([{ callId: bad?.callId, events: ['dialing'] }]);
      expect(outbox.size()).toBe(0);
    },
  );

  test('is dropped, and the call still gets its end', async () => {
    const { call, dialing, ringing, failed } = stepsOf();
    const { outbox, statements } = rig(isBad(call));
    const appended = [dialing, ringing, failed].map((step) => outbox.append(call, step));

    expect(await Promise.all(appended)).toEqual(['stored', 'stored', 'stored']);
    expect(statements.map((each) => each.summary())).toEqual([
      ['dialing ringing end: failed'],
      ['end: failed'],
    ]);
  });

  test('rejects for its appender if it is an answer', async () => {
    const { call, answer } = stepsOf();
    const { outbox } = rig(isBad(call));

    await expect(outbox.append(call, answer)).rejects.toThrow('the database refuses it');
  });

  test('does not block later steps', async () => {
    const { call, dialing, failed } = stepsOf();
    const { outbox } = rig(isBad(call));
    await expect(outbox.append(call, dialing)).rejects.toThrow('the database refuses it');

    expect(await outbox.append(call, failed)).toBe('stored');
  });

  test('is not retried forever if it is an end', async () => {
    const { call, dialing, failed } = stepsOf();
    const { outbox, statements } = rig((statement) => statement.fail(refusal('22P05')));
    const results: Promise<StepResult>[] = [
      outbox.append(call, dialing),
      outbox.append(call, failed),
    ];

    expect((await Promise.allSettled(results)).map(({ status }) => status)).toEqual([
      'rejected',
      'rejected',
    ]);
    expect(statements).toHaveLength(2);
    expect(outbox.size()).toBe(0);
  });
});

describe('an opt-out', () => {
  afterEach(() => void vi.useRealTimers());

  test('is sent immediately, and first if more steps wait than a statement takes', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const { outbox, statements } = rig((statement) => statement.store());
    for (let index = 0; index < 300; index += 1) {
      const { call, dialing } = stepsOf();
      void outbox.append(call, dialing);
    }
    const { call, optOut } = stepsOf();

    expect(await outbox.append(call, optOut)).toBe('stored');
    expect(statements[0]?.steps[0]?.call).toBe(call);
  });

  test('is stored although the outbox is full', async () => {
    const { outbox, statement } = rig();
    const [one, other] = [stepsOf(), stepsOf()];
    void outbox.append(one.call, { events: Array(100_000).fill(one.dialing.events[0]) });
    const optedOut = outbox.append(other.call, other.optOut);
    (await statement(1)).store();

    expect(await optedOut).toBe('stored');
  });

  test('is stored although the database refuses other events of its call', async () => {
    const { call, dialing, optOut, completed } = stepsOf();
    const { outbox, statements } = rig((statement) =>
      statement.summary().join().includes('dialing')
        ? statement.fail(refusal('22P05'))
        : statement.store(),
    );
    const appended = [dialing, optOut, completed].map((step) => outbox.append(call, step));

    expect(await Promise.all(appended)).toEqual(['stored', 'stored', 'stored']);
    expect(statements.map((each) => each.summary())).toEqual([
      ['dialing opted-out end: completed'],
      ['opted-out end: completed'],
    ]);
  });

  test('that the database refuses does not keep its call from ending', async () => {
    const { call, optOut, completed } = stepsOf();
    const { outbox, statements } = rig((statement) =>
      statement.summary().join().includes('opted-out')
        ? statement.fail(refusal('22P05'))
        : statement.store(),
    );
    const appended = [optOut, completed].map((step) => outbox.append(call, step));

    expect(await Promise.all(appended)).toEqual(['stored', 'stored']);
    expect(statements).toHaveLength(2);
  });

  test('that a process leaves behind is logged, with its call', async () => {
    const { outbox, statement, lines } = rig();
    const { call, optOut } = stepsOf();
    const results = Promise.allSettled([outbox.append(call, optOut)]);
    await statement(1);
    await outbox.stop(1);

    await results;
    expect(lines).toMatchObject([{ callId: call.callId, level: 50 }]);
  });
});

describe('the end of a process', () => {
  test('stores waiting steps', async () => {
    const { outbox, statements } = rig((statement) => statement.store());
    const [one, other] = [stepsOf(), stepsOf()];
    const appended = [outbox.append(one.call, one.failed), outbox.append(other.call, other.failed)];
    await outbox.stop(10_000);

    expect(await Promise.all(appended)).toEqual(['stored', 'stored']);
    expect(statements).toHaveLength(1);
  });

  test('waits for the statement under way, and for later steps', async () => {
    const { outbox, statement } = rig();
    const { call, dialing, failed } = stepsOf();
    const appended = [outbox.append(call, dialing)];
    const underWay = await statement(1);
    appended.push(outbox.append(call, failed));
    const stopped = outbox.stop(10_000);
    underWay.store();
    (await statement(2)).store();
    await stopped;

    expect(await Promise.all(appended)).toEqual(['stored', 'stored']);
  });

  test('leaves the rest to the next process, and rejects for their appenders', async () => {
    const { outbox, statements, statement } = rig();
    const [one, other] = [stepsOf(), stepsOf()];
    const appended = [outbox.append(one.call, one.dialing)];
    const underWay = await statement(1);
    appended.push(outbox.append(one.call, one.failed), outbox.append(other.call, other.dialing));
    const results = Promise.allSettled(appended);
    await outbox.stop(1);

    expect((await results).map(({ status }) => status)).toEqual([
      'rejected',
      'rejected',
      'rejected',
    ]);
    underWay.fail(away());
    await settled();
    expect(statements).toHaveLength(1);
  });

  test('refuses further steps', async () => {
    const { outbox, statements } = rig((statement) => statement.store());
    const { call, dialing } = stepsOf();
    await outbox.stop(10_000);

    await expect(outbox.append(call, dialing)).rejects.toThrow('this process ends');
    expect(statements).toEqual([]);
  });
});
