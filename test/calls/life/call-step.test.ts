import { describe, expect, test } from 'vitest';
import type { CallEvent, TerminalEvent } from '../../../src/calls/contract/call-event.ts';
import { type CallStep, eventsOf, fold } from '../../../src/calls/life/call-step.ts';
import { eventBuilder } from '../../support/call-events.ts';
import { storedLeg } from '../../support/call-records.ts';
import { scriptCall } from '../../support/scripted-call.ts';

const at = (second: number) => new Date(Date.UTC(2026, 2, 1, 10, 0, second));
const dialog = { ...storedLeg, dialogId: 'dialog-1' };

function story() {
  const tell = eventBuilder();
  const [dialing, ringing, answered] = [tell.dialing(), tell.ringing(), tell.answered()];
  const stopped = tell.amd('amd_stopped');
  return { dialing, ringing, answered, stopped, completed: tell.completed() as TerminalEvent };
}

const types = (events: readonly CallEvent[]) => events.map(({ type }) => type);

describe('steps of a call that follow one another', () => {
  test('are folded into one step with all events, in order', () => {
    const { dialing, ringing, answered, completed } = story();
    const steps: readonly CallStep[] = [
      { events: [dialing] },
      { events: [ringing] },
      { events: [answered], answeredAt: at(5) },
      { events: [], ending: { event: completed } },
    ];

    expect(steps.reduce(fold)).toEqual({
      events: [dialing, ringing, answered],
      answeredAt: at(5),
      ending: { event: completed },
    });
  });

  test('give the same step whichever two are folded first', () => {
    const { dialing, ringing, answered } = story();
    const one: CallStep = { events: [dialing], leg: storedLeg };
    const two: CallStep = { events: [ringing], ringingAt: at(2) };
    const three: CallStep = { events: [answered], answeredAt: at(5), leg: dialog };

    expect(fold(fold(one, two), three)).toEqual(fold(one, fold(two, three)));
  });

  test('keep the leg of the later step, or of the earlier one if the later has none', () => {
    const early: CallStep = { events: [], leg: storedLeg };

    expect(fold(early, { events: [], leg: dialog }).leg).toEqual(dialog);
    expect(fold(early, { events: [], ringingAt: at(2) }).leg).toEqual(storedLeg);
  });

  test('keep the first time of ringing', () => {
    const ringing: CallStep = { events: [], ringingAt: at(2) };

    expect(fold(ringing, { events: [], ringingAt: at(3) }).ringingAt).toEqual(at(2));
    expect(fold({ events: [] }, ringing).ringingAt).toEqual(at(2));
    expect(fold({ events: [] }, { events: [] })).toEqual({ events: [] });
  });

  test('are not changed by folding', () => {
    const { dialing, ringing } = story();
    const [one, two]: readonly CallStep[] = [{ events: [dialing] }, { events: [ringing] }];
    if (one === undefined || two === undefined) throw new Error('two steps');
    fold(one, two);

    expect([one, two]).toEqual([{ events: [dialing] }, { events: [ringing] }]);
  });
});

describe('an answer that the end doubts', () => {
  const { dialing, ringing, answered, stopped, completed } = story();
  const failed = { ...completed, type: 'failed' } as TerminalEvent;
  const doubt: CallStep = {
    events: [],
    ending: { event: failed, ifAnswered: [answered, stopped, completed] },
  };

  test('is removed if it waits together with the end, and nothing else is removed', () => {
    const waiting: CallStep = {
      ...{ events: [dialing, ringing, answered], ringingAt: at(2) },
      ...{ answeredAt: at(5), leg: dialog },
    };

    expect(fold(waiting, doubt)).toEqual({
      // The process that hangs up needs the dialog, whether the call was answered or not.
      ...{ events: [dialing, ringing], ringingAt: at(2), leg: dialog },
      ending: doubt.ending,
    });
  });

  test('leaves the choice between both endings to the database', () => {
    expect(fold({ events: [dialing] }, doubt).ending).toBe(doubt.ending);
  });

  test('is kept if the end does not doubt it', () => {
    const waiting: CallStep = { events: [answered], answeredAt: at(5) };

    expect(fold(waiting, { events: [], ending: { event: completed } })).toMatchObject({
      events: [answered],
      answeredAt: at(5),
    });
  });

  test('counts with all events that may be stored', () => {
    expect(types(eventsOf({ events: [dialing] }))).toEqual(['dialing']);
    expect(types(eventsOf({ events: [dialing], ending: { event: failed } }))).toEqual([
      'dialing',
      'failed',
    ]);
    expect(types(eventsOf(doubt))).toEqual(['failed', 'answered', 'amd', 'completed']);
  });
});

describe('the end of a call', () => {
  const answered = async () => {
    const call = scriptCall({ request: { machineDetection: 'disabled' } });
    await call.sent();
    await call.answer();
    return call;
  };
  const last = ({ steps }: ReturnType<typeof scriptCall>) => steps.at(-1);

  test('says that no leg is left if the far end has hung up or refused by itself', async () => {
    const hungUp = await answered();
    hungUp.remoteBye();
    await hungUp.settle();
    expect(last(hungUp)).toMatchObject({ ending: {}, legIsOver: true });

    const refused = scriptCall();
    await refused.sent();
    refused.fail({ sipStatus: 486 });
    await refused.settle();
    expect(last(refused)).toMatchObject({ ending: {}, legIsOver: true });
  });

  test('says nothing about the leg if the gateway ended it or lost it', async () => {
    const asked = await answered();
    asked.actor.send({ type: 'command.end', command: { by: 'application' } });
    const lost = await answered();
    lost.leg().observe({ kind: 'ended', end: { at: lost.now(), by: 'lost', reason: 'cut' } });
    const cancelled = scriptCall();
    await cancelled.sent();
    cancelled.actor.send({ type: 'command.end', command: { by: 'application' } });
    for (const call of [asked, lost, cancelled]) {
      await call.settle();
      expect(last(call)).toHaveProperty('ending');
      expect(last(call)).not.toHaveProperty('legIsOver');
    }
  });
});
