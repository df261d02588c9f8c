// Legs of an engine that stays away: other processes are asked, until the leg is ended or its time is over.

import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { StoredLeg } from '../../src/calls/ports.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { AbandonedLegs } from '../../src/sip/abandoned-legs.ts';
import type { OrphanResult } from '../../src/sip/orphans.ts';
import { defaultSipLimits } from '../../src/sip/sip-limits.ts';
import { storedLeg } from '../support/scripted-call.ts';

beforeEach(
  () => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] }),
);
afterEach(() => void vi.useRealTimers());

const answeredLeg = { ...storedLeg, dialogId: 'dialog-1' };

/** Others answer one after the other; the last answer is repeated. */
function rig(...answers: readonly [OrphanResult, ...OrphanResult[]]) {
  const asked: StoredLeg[] = [];
  const legs = new AbandonedLegs({
    limits: defaultSipLimits,
    logger: silentLogger,
    linkOf: () => undefined,
    otherLink: () => undefined,
    askOthers: async (leg) => {
      asked.push(leg);
      return answers[Math.min(asked.length, answers.length) - 1] ?? 'unreachable';
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
