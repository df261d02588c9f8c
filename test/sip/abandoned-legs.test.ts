// Legs of an engine that stays unreachable. The process asks other processes to end such a leg,
// until they have ended it or its time has run out.

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { LegEndResult, StoredLeg } from '../../src/calls/contract/stored-leg.ts';
import type { EngineLink } from '../../src/sip/engine/engine-link.ts';
import { defaultSipLimits } from '../../src/sip/engine/sip-limits.ts';
import { AbandonedLegs } from '../../src/sip/legs/abandoned-legs.ts';
import { recordedLogger } from '../support/recorded-logger.ts';
import { storedLeg } from '../support/scripted-call.ts';

beforeEach(
  () => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] }),
);
afterEach(() => void vi.useRealTimers());

const answeredLeg = { ...storedLeg, dialogId: 'dialog-1' };

type Answer = LegEndResult | Promise<LegEndResult> | Error;

/** The other processes give these answers in order. The last answer is repeated. */
function rig(...answers: readonly [Answer, ...Answer[]]) {
  const asked: StoredLeg[] = [];
  const links: { own?: EngineLink; other?: EngineLink } = {};
  const { logger, lines } = recordedLogger('error');
  const legs = new AbandonedLegs({
    limits: { ...defaultSipLimits, crossingMs: 1 },
    logger,
    linkOf: () => links.own,
    otherLink: () => links.other,
    credentialsOf: () => undefined,
    askOthers: async (leg) => {
      asked.push(leg);
      const answer = await (answers[Math.min(asked.length, answers.length) - 1] ?? 'unreachable');
      if (answer instanceof Error) throw answer;
      return answer;
    },
  });
  const add = (leg: StoredLeg) => {
    const entry = { isOver: false };
    void legs.add(leg).then(() => {
      entry.isOver = true;
    });
    return entry;
  };
  return { legs, asked, add, links, lines };
}

type Verdict = { readonly ok: true } | { readonly ok: false; readonly reason: string };

function linkOf(engine: string, answerTo: (method: string) => Verdict): EngineLink {
  const link = {
    ...{ engine, isUp: true, attach: () => undefined, detach: () => undefined },
    request: ({ method }: { method: string }, done: (result: Verdict) => void) =>
      done(answerTo(method)),
  };
  return link as unknown as EngineLink;
}

test('waits some seconds for its own engine before other processes are asked', async () => {
  const { asked, add } = rig('ended');
  const entry = add(answeredLeg);

  await vi.advanceTimersByTimeAsync(2_900);
  expect(asked).toEqual([]);
  await vi.advanceTimersByTimeAsync(1_100);
  expect(asked).toEqual([answeredLeg]);
  expect(entry.isOver).toBe(true);
});

test('asks other processes again until one of them ends the leg', async () => {
  const { asked, add } = rig('unreachable', 'unreachable', 'ended');
  const entry = add(storedLeg);

  await vi.advanceTimersByTimeAsync(10_000);

  expect(asked).toHaveLength(3);
  expect(entry.isOver).toBe(true);
});

test('logs a failed request to other processes, and repeats it', async () => {
  const { asked, add, lines } = rig(new Error('a defect'), 'ended');
  const entry = add(answeredLeg);

  await vi.advanceTimersByTimeAsync(10_000);

  expect(asked).toHaveLength(2);
  expect(entry.isOver).toBe(true);
  expect(lines).toMatchObject([
    { work: 'asking another process to end a leg', err: { message: 'a defect' } },
  ]);
});

test('logs a failed request to an engine, and repeats it', async () => {
  const { add, links, lines } = rig('unreachable');
  const entry = add(answeredLeg);
  let tries = 0;
  links.own = linkOf(answeredLeg.engine, () => {
    tries += 1;
    if (tries === 1) throw new Error('a defect');
    return { ok: false, reason: 'unable to find dialog' };
  });

  await vi.advanceTimersByTimeAsync(10_000);

  expect(entry.isOver).toBe(true);
  expect(lines).toMatchObject([{ work: 'ending an abandoned leg', err: { message: 'a defect' } }]);
});

test('drops no leg early, even if the clock passes a limit during a sweep', async () => {
  for (let offset = 0; offset < 60; offset += 1) {
    const { asked, add } = rig('ended');
    let nowMs = 0;
    // A clock that advances each time it is read.
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

test('lets its own engine end the leg while other processes are asked', async () => {
  const requests: string[] = [];
  let answer = (_result: LegEndResult): void => undefined;
  const { legs, add } = rig(
    new Promise((resolve) => {
      answer = resolve;
    }),
  );
  const entry = add(answeredLeg);
  await vi.advanceTimersByTimeAsync(4_000);
  const link = linkOf(answeredLeg.engine, (method) => {
    requests.push(method);
    return { ok: false, reason: 'unable to find dialog' };
  });
  legs.onUp(link);
  await vi.advanceTimersByTimeAsync(0);

  expect(requests).toEqual(['ACK', 'BYE']);
  expect(entry.isOver).toBe(true);
  answer('ended');
});

test('drops an answered leg that no engine knows, but keeps a leg that has not rung for its own engine', async () => {
  const { add } = rig('gone');
  const [answered, ringing] = [add(answeredLeg), add(storedLeg)];

  await vi.advanceTimersByTimeAsync(10_000);
  expect(answered.isOver).toBe(true);
  expect(ringing.isOver).toBe(false);

  await vi.advanceTimersByTimeAsync(defaultSipLimits.abandonedForMs);
  expect(ringing.isOver).toBe(true);
});

test('leaves a leg unresolved that has not ended when this process stops', async () => {
  const { legs, add } = rig('unreachable');
  const entry = add(answeredLeg);
  await vi.advanceTimersByTimeAsync(4_000);
  legs.close();
  const late = add(answeredLeg);
  await vi.advanceTimersByTimeAsync(defaultSipLimits.abandonedForMs);

  expect([entry.isOver, late.isOver]).toEqual([false, false]);
});

describe('a cancelled leg that may still be answered', () => {
  test('is checked again for 32 s, and no longer', async () => {
    const { asked, add } = rig('cancelled');
    const entry = add(storedLeg);

    await vi.advanceTimersByTimeAsync(30_000);
    expect(entry.isOver).toBe(false);
    expect(asked.length).toBeGreaterThan(20);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(entry.isOver).toBe(true);
    const times = asked.length;
    await vi.advanceTimersByTimeAsync(10_000);
    expect(asked).toHaveLength(times);
  });

  test.each(['ended', 'gone'] as const)('is dropped when the result is %s', async (result) => {
    const { add } = rig('cancelled', 'cancelled', result);
    const entry = add(storedLeg);

    await vi.advanceTimersByTimeAsync(10_000);

    expect(entry.isOver).toBe(true);
  });

  test('is checked at its own engine immediately, and again later', async () => {
    const { legs, add, links } = rig('unreachable');
    const entry = add({ ...storedLeg, localTag: 'mine' });
    const requests: string[] = [];
    let cancels = 0;
    const link = linkOf(storedLeg.engine, (method) => {
      requests.push(method);
      if (method === 'CANCEL') cancels += 1;
      // The final response arrives at the end of the second attempt.
      const isUnderWay = method === 'CANCEL' && cancels <= 3;
      return isUnderWay ? { ok: true } : { ok: false, reason: 'unknown' };
    });
    links.own = link;
    legs.onUp(link);
    await vi.waitFor(() => expect(entry.isOver).toBe(true), { timeout: 5_000 });

    const once = ['CANCEL', 'ACK', 'BYE', 'ACK', 'BYE', 'CANCEL'];
    expect(requests).toEqual([...once, ...once]);
  });
});

test('another engine ends a leg that has rung if its own engine stays unreachable', async () => {
  const { asked, add, links } = rig('unreachable');
  const requests: string[] = [];
  links.other = linkOf('127.0.0.1:9023', (method) => {
    requests.push(method);
    return { ok: false, reason: 'unknown' };
  });
  const ringing = add({ ...storedLeg, remoteTag: 'far' });
  const silent = add(storedLeg);
  await vi.advanceTimersByTimeAsync(4_000);

  expect(requests).toEqual(['CANCEL']);
  expect([ringing.isOver, silent.isOver]).toEqual([true, false]);
  expect(new Set(asked)).toEqual(new Set([storedLeg]));
});
