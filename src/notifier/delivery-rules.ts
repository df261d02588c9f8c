// Decides whether and when to retry a notification, and which of a call's notifications goes next.
// All times are passed in as arguments, so the rules can be tested without a clock.

export type RetrySchedule = {
  /** Delays after the first, second, … failed attempt. */
  readonly delaysMs: readonly number[];
  readonly thenEveryMs: number;
  /** We stop retrying at this age, which is when the final attempt is made. */
  readonly giveUpAfterMs: number;
  /**
   * Upper bound of the jitter, as a fraction of the delay. The jitter spreads out the retries of
   * notifications that failed together.
   */
  readonly jitter: number;
  /**
   * If the receiver rejects a notification with a 4xx status, the call's later notifications are
   * delayed for this time, and then sent ahead of the rejected one.
   */
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
  /** No response: a connection, TLS or DNS error, or a time-out. */
  | { readonly kind: 'unreachable'; readonly error: string }
  /** The gateway can't send to this address, or isn't allowed to, so retrying wouldn't help. */
  | { readonly kind: 'forbidden'; readonly error: string };

/**
 * Why a notification became a dead letter. `expired`: the final attempt failed. `gone`: the
 * receiver responded with 410 to one of the call's notifications. `forbidden`: the gateway can't
 * send to this address, or isn't allowed to.
 */
export const deliveryFailures = ['expired', 'gone', 'forbidden'] as const;
export type Failure = (typeof deliveryFailures)[number];

export type Consequence =
  | { readonly kind: 'delivered' }
  | { readonly kind: 'failed'; readonly failure: Failure }
  /**
   * `receiver` delays all the call's notifications until `at`. `event` delays only this
   * notification until `at`, and the call's later notifications for at most `passRefusedAfterMs`.
   */
  | { readonly kind: 'retry'; readonly at: number; readonly fault: 'receiver' | 'event' };

/**
 * Bounds for `Retry-After`. Receivers may change the delay, but they can't make us hammer them or
 * wait forever.
 */
const minRetryAfterMs = 1_000;
const maxRetryAfterMs = hourMs;

export function judge(
  result: AttemptResult,
  /**
   * `owedSince` is the time when the notification was created or last replayed. `attempts` counts
   * only the attempts since then.
   */
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

/** @param attempts attempts so far, including the current attempt */
function retryDelayMs(result: AttemptResult, attempts: number, schedule: RetrySchedule): number {
  const asked = result.kind === 'response' ? result.retryAfterS : undefined;
  if (asked !== undefined)
    return Math.min(Math.max(asked * 1_000, minRetryAfterMs), maxRetryAfterMs);
  return schedule.delaysMs[attempts - 1] ?? schedule.thenEveryMs;
}

function isSuccess(result: AttemptResult): boolean {
  return result.kind === 'response' && result.status >= 200 && result.status < 300;
}

/**
 * Tells whether the receiver as a whole is failing, rather than just rejecting this notification.
 *
 * @returns undefined if we didn't send a request
 */
export function receiverFailed(result: AttemptResult): boolean | undefined {
  if (result.kind === 'forbidden') return undefined;
  return !isSuccess(result) && isReceiverFault(result);
}

/**
 * Distinguishes a failing receiver from one that rejects only this notification. We treat a
 * redirect as a failing receiver, because we don't follow redirects and the receiver would most
 * likely redirect every other notification too.
 */
function isReceiverFault(result: AttemptResult): boolean {
  return (
    result.kind !== 'response' ||
    result.status >= 500 ||
    result.status === 429 ||
    result.status < 400
  );
}

/**
 * Reads the `Retry-After` header of a 429 or 503 response, which contains seconds or an HTTP date.
 *
 * @returns undefined for any other status, or if the header is missing or malformed
 */
export function parseRetryAfterS(
  status: number,
  header: string | undefined,
  now: number,
): number | undefined {
  if ((status !== 429 && status !== 503) || header === undefined) return undefined;
  const text = header.trim();
  if (/^\d{1,9}$/.test(text)) return Number(text);
  // HTTP dates start with a weekday. `Date.parse` alone accepts far too much.
  const at = /^[A-Z][a-z]{2,8},? /.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? undefined : Math.max(0, (at - now) / 1_000);
}

export type PendingNotification = {
  readonly eventId: string;
  readonly appId: string;
  readonly sequence: number;
  readonly body: string;
  readonly attempts: number;
  /** Attempts made before the last replay. The retry schedule ignores them. */
  readonly attemptsBefore: number;
  /** When the notification was created or last replayed. */
  readonly owedSince: number;
  /** Time of the first 4xx response to the notification. Undefined if there hasn't been any. */
  readonly refusedAt?: number;
  /** After a 4xx response, the next attempt can't start before this time. */
  readonly dueAt?: number;
};

export type CallQueueStep =
  | { readonly kind: 'send'; readonly notification: PendingNotification }
  | { readonly kind: 'wait'; readonly until: number }
  | { readonly kind: 'finish' };

/**
 * Decides what to do next with a call's queue.
 *
 * @param pending the call's pending notifications, by sequence
 * @param context nothing is sent before `heldUntil`
 */
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

/** Returns the time from which the call's later notifications may overtake a rejected one (4xx). */
function passableAt({ refusedAt }: PendingNotification, passRefusedAfterMs: number): number {
  return refusedAt === undefined ? Number.POSITIVE_INFINITY : refusedAt + passRefusedAfterMs;
}

/**
 * Computes when to retry a rejected notification that was read from the database, which doesn't
 * contain the due time.
 */
export function refusedDueAt(
  lastAttemptAt: number,
  attempts: number,
  schedule: RetrySchedule,
): number {
  return lastAttemptAt + (schedule.delaysMs[attempts - 1] ?? schedule.thenEveryMs);
}
