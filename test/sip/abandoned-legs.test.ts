// Legs of an engine that stays away: other processes are asked, until the leg is ended or its time is over.

import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { OrphanResult, StoredLeg } from '../../src/calls/contract/stored-leg.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { AbandonedLegs } from '../../src/sip/abandoned-legs.ts';
import type { EngineLink } from '../../src/sip/engine-link.ts';
import { defaultSipLimits } from '../../src/sip/sip-limits.ts';
import { storedLeg } from '../support/scripted-call.ts';

beforeEach(
  () => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] }),
);
afterEach(() => void vi.useRealTimers());

const answeredLeg = { ...storedLeg, dialogId: 'dialog-1' };

type Answer = OrphanResult | Promise<OrphanResult>;

/** Others answer one after the other; the last answer is repeated. */
function rig(...answers: readonly [Answer, ...Answer[]]) {
  const asked: StoredLeg[] = [];
  const legs = new AbandonedLegs({
    limits: defaultSipLimits,
    logger: silentLogger,
    linkOf: () => undefined,
    otherLink: () => undefined,
    askOthers: async (leg) => {
      asked.push(leg);
      return await (answers[Math.min(asked.length, answers.length) - 1] ?? 'unreachable');
    },
  });
  const add = (leg: StoredLeg) => {
    const entry = { isOver: false };
    void legs.add(leg).then(() => {
      entry.isOver = true;
    });
    return entry;
  };
  return { legs, asked, add };
}

test('its own engine has some seconds to come back before others are asked', async () => {
  const { asked, add } = rig('ended');
  const entry = add(answeredLeg);

  await vi.advanceTimersByTimeAsync(2_900);
  expect(asked).toEqual([]);
  await vi.advanceTimersByTimeAsync(1_100);
  expect(asked).toEqual([answeredLeg]);
  expect(entry.isOver).toBe(true);
});

test('others are asked again until one of them could end it', async () => {
  const { asked, add } = rig('unreachable', 'unreachable', 'ended');
  const entry = add(storedLeg);

  await vi.advanceTimersByTimeAsync(10_000);

  expect(asked).toHaveLength(3);
  expect(entry.isOver).toBe(true);
});

test('no leg is forgotten, however close to the limit the clock stands while it is looked at', async () => {
  for (let offset = 0; offset < 60; offset += 1) {
    const { asked, add } = rig('ended');
    let nowMs = 0;
    // A clock that goes on with each look at it.
    const look = vi.spyOn(performance, 'now').mockImplementation(() => (nowMs += 0.5));
    const entries = Array.from({ length: 10 }, () => add(answeredLeg));
    nowMs = defaultSipLimits.takeOverAfterMs - offset;
    await vi.advanceTimersByTimeAsync(defaultSipLimits.abandonedSweepMs);
    nowMs *= 2;
    await vi.advanceTimersByTimeAsync(defaultSipLimits.abandonedSweepMs);
    look.mockRestore();

    expect(entries.filter(({ isOver }) => !isOver)).toEqual([]);
    expect(asked).toHaveLength(10);
  }
});

test('while others are asked its own engine may come back, and end it', async () => {
  const requests: string[] = [];
  let answer = (_result: OrphanResult): void => undefined;
  const { legs, add } = rig(
    new Promise((resolve) => {
      answer = resolve;
    }),
  );
  const entry = add(answeredLeg);
  await vi.advanceTimersByTimeAsync(4_000);
  const link = {
    engine: answeredLeg.engine,
    isUp: true,
    attach: () => undefined,
    detach: () => undefined,
    request: ({ method }: { method: string }, done: (result: unknown) => void) => {
      requests.push(method);
      done({ ok: false, reason: 'unable to find dialog' });
    },
  };
  legs.onUp(link as unknown as EngineLink);
  await vi.advanceTimersByTimeAsync(0);

  expect(requests).toEqual(['ACK', 'BYE']);
  expect(entry.isOver).toBe(true);
  answer('ended');
});

test('what nobody knows is over where it was answered; one that rings may be known to its own engine', async () => {
  const { add } = rig('gone');
  const [answered, ringing] = [add(answeredLeg), add(storedLeg)];

  await vi.advanceTimersByTimeAsync(10_000);
  expect(answered.isOver).toBe(true);
  expect(ringing.isOver).toBe(false);

  await vi.advanceTimersByTimeAsync(defaultSipLimits.abandonedForMs);
  expect(ringing.isOver).toBe(true);
});

test('what was asked for when this process stops is given up', async () => {
  const { legs, add } = rig('unreachable');
  const entry = add(answeredLeg);
  await vi.advanceTimersByTimeAsync(4_000);
  legs.close();
  await vi.advanceTimersByTimeAsync(0);

  expect(entry.isOver).toBe(true);
});
