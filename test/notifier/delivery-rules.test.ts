import { describe, expect, test } from 'vitest';
import {
  type AttemptResult,
  judge,
  nextStep,
  type PendingNotification,
  parseRetryAfterS,
  receiverFailed,
  defaultRetrySchedule as schedule,
} from '../../src/notifier/delivery-rules.ts';

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const born = Date.UTC(2026, 10, 20);

function judged(
  result: AttemptResult,
  options: { attempts?: number; ageMs?: number; random?: number } = {},
) {
  const now = born + (options.ageMs ?? 0);
  const verdict = judge(
    result,
    { attempts: options.attempts ?? 1, owedSince: born },
    { now, schedule, random: options.random ?? 0 },
  );
  return verdict.kind === 'retry'
    ? { kind: 'retry', afterMs: verdict.at - now, fault: verdict.fault }
    : verdict;
}

const response = (status: number, retryAfterS?: number): AttemptResult => ({
  kind: 'response',
  status,
  ...(retryAfterS === undefined ? {} : { retryAfterS }),
});

describe('the verdict on an attempt', () => {
  test.each([200, 201, 202, 204, 299])('%i is success', (status) => {
    expect(judged(response(status))).toEqual({ kind: 'delivered' });
  });

  test.each([
    ['301 Moved Permanently', response(301)],
    ['302 Found', response(302)],
    ['429 Too Many Requests', response(429)],
    ['500 Internal Server Error', response(500)],
    ['503 Service Unavailable', response(503)],
    ['a connection refused', { kind: 'unreachable', error: 'ECONNREFUSED' }],
  ] satisfies [string, AttemptResult][])('%s is a failure of the receiver', (_, result) => {
    expect(judged(result)).toEqual({ kind: 'retry', afterMs: 2 * second, fault: 'receiver' });
  });

  test.each([400, 401, 403, 404, 409, 413, 422])('%i refuses this event only', (status) => {
    expect(judged(response(status))).toEqual({
      kind: 'retry',
      afterMs: 2 * second,
      fault: 'event',
    });
  });

  test('410 Gone ends the notifications of the call', () => {
    expect(judged(response(410))).toEqual({ kind: 'failed', failure: 'gone' });
  });

  test('a forbidden URL fails at once', () => {
    expect(judged({ kind: 'forbidden', error: 'private' })).toEqual({
      kind: 'failed',
      failure: 'forbidden',
    });
  });

  test.each([
    [1, 2 * second],
    [2, 10 * second],
    [3, 30 * second],
    [4, 2 * minute],
    [5, 10 * minute],
    [6, 30 * minute],
    [7, hour],
    [20, hour],
  ])('attempt %i is followed by a pause of %i ms', (attempts, afterMs) => {
    expect(judged(response(500), { attempts })).toMatchObject({ afterMs });
  });

  test('jitter adds up to a fifth', () => {
    expect(judged(response(500), { random: 0.5 })).toMatchObject({ afterMs: 2_200 });
    expect(judged(response(500), { attempts: 7, random: 1 })).toMatchObject({
      afterMs: 1.2 * hour,
    });
  });

  test('the last attempt is made at an age of 24 hours', () => {
    const attempts = 25;
    expect(judged(response(500), { attempts, ageMs: 23.5 * hour })).toMatchObject({
      afterMs: 0.5 * hour,
    });
    expect(judged(response(500), { attempts, ageMs: 24 * hour })).toEqual({
      kind: 'failed',
      failure: 'expired',
    });
  });

  test('Retry-After is honoured within bounds', () => {
    expect(judged(response(429, 120))).toMatchObject({ afterMs: 2 * minute });
    expect(judged(response(503, 0))).toMatchObject({ afterMs: second });
    expect(judged(response(503, 10_000_000))).toMatchObject({ afterMs: hour });
  });
});

describe('whether an attempt shows that the receiver is down', () => {
  test.each([
    ['a success', response(204), false],
    ['a refusal of one event', response(404), false],
    ['410, which concerns one call', response(410), false],
    ['an error, even at the last attempt', response(503), true],
    ['no response', { kind: 'unreachable', error: 'ECONNREFUSED' }, true],
    ['no request', { kind: 'forbidden', error: 'private' }, undefined],
  ] satisfies [string, AttemptResult, boolean | undefined][])('%s', (_, result, failed) => {
    expect(receiverFailed(result)).toBe(failed);
  });
});

describe('Retry-After', () => {
  test.each([
    [429, '30', 30],
    [503, ' 5 ', 5],
    [503, 'Fri, 20 Nov 2026 00:02:00 GMT', 120],
    [503, 'Thu, 19 Nov 2026 00:00:00 GMT', 0],
    [500, '30', undefined],
    [429, undefined, undefined],
    [429, '', undefined],
    [429, '-5', undefined],
    [429, '1.5', undefined],
    [429, '99999999999', undefined],
    [429, 'soon', undefined],
    [429, 'Friday, whenever', undefined],
  ])('%i with %j means %j seconds', (status, header, expected) => {
    expect(parseRetryAfterS(status, header, born)).toBe(expected);
  });
});

describe('the next step of a call', () => {
  const now = born;
  const pending = (
    sequence: number,
    more: Partial<PendingNotification> = {},
  ): PendingNotification => ({
    eventId: `evt-${sequence}`,
    appId: 'app-1',
    sequence,
    body: '{}',
    attempts: 0,
    attemptsBefore: 0,
    owedSince: born,
    ...more,
  });
  const step = (queue: readonly PendingNotification[], heldUntil?: number) => {
    const next = nextStep(queue, {
      now,
      passRefusedAfterMs: schedule.passRefusedAfterMs,
      ...(heldUntil === undefined ? {} : { heldUntil }),
    });
    return next.kind === 'send' ? next.notification.sequence : next;
  };

  test('is to send the first pending notification', () => {
    expect(step([pending(2), pending(3)])).toBe(2);
  });

  test('is to finish if nothing is pending', () => {
    expect(step([])).toEqual({ kind: 'finish' });
  });

  test('is to wait while the receiver as a whole fails', () => {
    expect(step([pending(1), pending(2)], now + 10)).toEqual({ kind: 'wait', until: now + 10 });
    expect(step([pending(1)], now)).toBe(1);
  });

  test('is to wait for the retry of a notification that was just refused', () => {
    const refused = pending(1, { attempts: 1, refusedAt: now, dueAt: now + 2 * second });
    expect(step([refused, pending(2)])).toEqual({ kind: 'wait', until: now + 2 * second });
  });

  test('is to wait behind a refused notification for a minute at most', () => {
    const refused = pending(1, {
      attempts: 4,
      refusedAt: now - 50 * second,
      dueAt: now + 2 * minute,
    });
    expect(step([refused, pending(2)])).toEqual({ kind: 'wait', until: now + 10 * second });
  });

  test('is to overtake a notification that was first refused a minute ago', () => {
    const refused = pending(1, { attempts: 4, refusedAt: now - minute, dueAt: now + 2 * minute });
    expect(step([refused, pending(2)])).toBe(2);
    expect(step([refused])).toEqual({ kind: 'wait', until: now + 2 * minute });
  });

  test('is to send a refused notification again when it is due', () => {
    const refused = pending(1, { attempts: 4, refusedAt: now - 3 * minute, dueAt: now });
    expect(step([refused, pending(2)])).toBe(1);
  });
});
