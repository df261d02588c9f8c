// What follows from an attempt, and which notification of a call goes next. Pure: times in, decisions out.

export type RetrySchedule = {
  /** Delay after the first, second, … failed attempt. */
  readonly delaysMs: readonly number[];
  readonly thenEveryMs: number;
  /** From the notification's birth; the last attempt is made at this age. */
  readonly giveUpAfterMs: number;
  /** Share of the delay that is added at random, so that what failed together does not come back together. */
  readonly jitter: number;
  /** An event that the receiver refuses (4xx) lets its successors pass after this. */
  readonly passRefusedAfterMs: number;
};

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

export const defaultRetrySchedule: RetrySchedule = {
  delaysMs: [2_000, 10_000, 30_000, 2 * minuteMs, 10 * minuteMs, 30 * minuteMs],
  thenEveryMs: hourMs,
  giveUpAfterMs: 24 * hourMs,
  jitter: 0.2,
  passRefusedAfterMs: minuteMs,
};

export type AttemptResult =
  | { readonly kind: 'response'; readonly status: number; readonly retryAfterS?: number }
  /** No response: connection, TLS, DNS, time-out. */
  | { readonly kind: 'unreachable'; readonly error: string }
  /** We may not, or cannot, send there at all; trying again would be the same. */
  | { readonly kind: 'forbidden'; readonly error: string };

/**
 * Why a notification became a dead letter. `expired`: its time is over. `gone`: the receiver said 410, to this one or to
 * another of the same call. `forbidden`: it may not be sent there, or cannot be.
 */
export type Failure = 'expired' | 'gone' | 'forbidden';

export type Consequence =
  | { readonly kind: 'delivered' }
  | { readonly kind: 'failed'; readonly failure: Failure }
  /** `receiver` holds the whole call back until then; `event` holds its successors for a while. */
  | { readonly kind: 'retry'; readonly at: number; readonly fault: 'receiver' | 'event' };

/** A receiver may ask for more patience than the schedule has, but not for none and not for ever. */
const minRetryAfterMs = 1_000;
const maxRetryAfterMs = hourMs;

export function judge(
  result: AttemptResult,
  /** Since it was created, or replayed. */
  notification: { readonly attempts: number; readonly owedSince: number },
  context: { readonly now: number; readonly schedule: RetrySchedule; readonly random: number },
): Consequence {
  if (result.kind === 'forbidden') return { kind: 'failed', failure: 'forbidden' };
  if (isSuccess(result)) return { kind: 'delivered' };
  if (result.kind === 'response' && result.status === 410)
    return { kind: 'failed', failure: 'gone' };
  const { now, schedule } = context;
  const lastAttemptAt = notification.owedSince + schedule.giveUpAfterMs;
  if (now >= lastAttemptAt) return { kind: 'failed', failure: 'expired' };
  const delayMs = retryDelayMs(result, notification.attempts, schedule);
  const at = now + Math.round(delayMs * (1 + schedule.jitter * context.random));
  return {
    kind: 'retry',
    at: Math.min(at, lastAttemptAt),
    fault: isReceiverFault(result) ? 'receiver' : 'event',
  };
}

/** `attempts`: made so far, this one included. */
function retryDelayMs(result: AttemptResult, attempts: number, schedule: RetrySchedule): number {
  const asked = result.kind === 'response' ? result.retryAfterS : undefined;
  if (asked !== undefined)
    return Math.min(Math.max(asked * 1_000, minRetryAfterMs), maxRetryAfterMs);
  return schedule.delaysMs[attempts - 1] ?? schedule.thenEveryMs;
}

function isSuccess(result: AttemptResult): boolean {
  return result.kind === 'response' && result.status >= 200 && result.status < 300;
}

/** Whether the receiver as a whole is down, whatever becomes of the notification. Undefined: it was not asked. */
export function receiverFailed(result: AttemptResult): boolean | undefined {
  if (result.kind === 'forbidden') return undefined;
  return !isSuccess(result) && isReceiverFault(result);
}

/** As opposed to a refusal of this one event. A redirect is not followed, and moves every event alike. */
function isReceiverFault(result: AttemptResult): boolean {
  return (
    result.kind !== 'response' ||
    result.status >= 500 ||
    result.status === 429 ||
    result.status < 400
  );
}

/** Of `Retry-After`: seconds or an HTTP date; undefined where it says nothing usable. Only 429 and 503 are asked. */
export function parseRetryAfterS(
  status: number,
  header: string | undefined,
  now: number,
): number | undefined {
  if ((status !== 429 && status !== 503) || header === undefined) return undefined;
  const text = header.trim();
  if (/^\d{1,9}$/.test(text)) return Number(text);
  // Only the form that starts with a day's name: Date.parse takes far too much for a date.
  const at = /^[A-Z][a-z]{2,8},? /.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? undefined : Math.max(0, (at - now) / 1_000);
}

export type PendingNotification = {
  readonly eventId: string;
  readonly appId: string;
  readonly sequence: number;
  readonly body: string;
  readonly attempts: number;
  /** Those before it was replayed: the schedule begins anew. */
  readonly attemptsBefore: number;
  /** When it was created, or replayed. */
  readonly owedSince: number;
  /** When a refusal (4xx) first held its successors up. */
  readonly refusedAt?: number;
  /** Of a refused one: not before. */
  readonly dueAt?: number;
};

export type CallQueueStep =
  | { readonly kind: 'send'; readonly notification: PendingNotification }
  | { readonly kind: 'wait'; readonly until: number }
  | { readonly kind: 'finish' };

/** `pending`: of one call, by sequence. `heldUntil`: the receiver as a whole failed. */
export function nextStep(
  pending: readonly PendingNotification[],
  context: {
    readonly now: number;
    readonly heldUntil?: number;
    readonly passRefusedAfterMs: number;
  },
): CallQueueStep {
  if (pending.length === 0) return { kind: 'finish' };
  const { now, heldUntil } = context;
  if (heldUntil !== undefined && heldUntil > now) return { kind: 'wait', until: heldUntil };
  let until = Number.POSITIVE_INFINITY;
  for (const notification of pending) {
    const dueAt = notification.dueAt ?? now;
    if (dueAt <= now) return { kind: 'send', notification };
    until = Math.min(until, dueAt);
    const passAt = passableAt(notification, context.passRefusedAfterMs);
    if (passAt > now) return { kind: 'wait', until: Math.min(until, passAt) };
  }
  return { kind: 'wait', until };
}

/** When its successors may go before it: only where the receiver refused it. */
function passableAt({ refusedAt }: PendingNotification, passRefusedAfterMs: number): number {
  return refusedAt === undefined ? Number.POSITIVE_INFINITY : refusedAt + passRefusedAfterMs;
}

/** When a refused one that was read back from the store is due again. */
export function refusedDueAt(
  lastAttemptAt: number,
  attempts: number,
  schedule: RetrySchedule,
): number {
  return lastAttemptAt + (schedule.delaysMs[attempts - 1] ?? schedule.thenEveryMs);
}
