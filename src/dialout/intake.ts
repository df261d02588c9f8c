// Accepts dial-out requests. A request counts as accepted once the database has stored it. After
// that, this process either claims the call immediately or wakes another process.

import { randomUUID } from 'node:crypto';
import type { AcceptedCall } from '../calls/call-types.ts';
import type { CallEvent } from '../calls/contract/call-event.ts';
import type { CallId } from '../calls/contract/identity.ts';
import type {
  AcceptResult,
  CallIntake,
  Intake,
  LimitName,
  QueuedNotification,
  Submission,
  SubmitResult,
  TrunkLimits,
} from '../calls/dialout-ports.ts';
import { queuedEvent } from '../calls/life/call-events.ts';
import type { Clock } from '../calls/ports.ts';
import { mayDial, targetsOf } from '../calls/target/app-limits.ts';
import type { Logger } from '../lib/logger.ts';
import type { CallTaking } from './call-taking.ts';

export type IntakePorts = {
  readonly ledger: CallIntake;
  readonly taking: Pick<CallTaking, 'accepted' | 'takeAlong' | 'waiting'>;
  readonly limitsOf: (trunk: string) => TrunkLimits | undefined;
  /** @returns undefined if the request doesn't select the `queued` event */
  readonly queuedNotification: (
    call: AcceptedCall,
    queued: CallEvent,
  ) => QueuedNotification | undefined;
  /**
   * Publishes the `queued` event. Called once the call has been stored together with this event.
   */
  readonly onStored: (event: CallEvent, submission: Submission) => void;
  /**
   * Returns true while this process is draining. If we still accepted a call, it would have to wait
   * for another process.
   */
  readonly isStopping: () => boolean;
  readonly clock: Clock;
  readonly logger: Logger;
};

export type IntakeLimits = {
  /**
   * Once this many calls are queued, we reject requests with 429. At a trunk's default rate, the
   * queue then takes minutes to dial, not hours.
   */
  readonly maxQueued: number;
  /** Queue time-out for requests that don't set one. */
  readonly queueTimeoutMs: number;
};

const retryAfterS = 5;
const targetForbidden = { kind: 'target-forbidden' } as const;
const dayMs = 86_400_000;

export function createIntake(ports: IntakePorts, limits: IntakeLimits): Intake {
  return {
    async submit(submission) {
      // A request with an idempotency key may repeat an accepted request, so the ledger has to
      // decide.
      const { limits: allowed, idempotency, request } = submission;
      const mayDialAll = targetsOf(request).every((target) => mayDial(allowed, target));
      if (idempotency === undefined && !mayDialAll) return targetForbidden;
      const call = acceptedCall(submission, ports.clock.now(), limits);
      const refusal = currentRefusal(ports, call, limits);
      if (refusal !== undefined) return await earlierResultOr(refusal, ports, call, submission);
      try {
        return await accept(ports, call, submission);
      } catch (error) {
        ports.logger.error({ err: error }, 'dial-out request may have been stored');
        return { kind: 'unknown', reason: 'the answer of the database was lost', retryAfterS };
      }
    },
  };
}

/**
 * Returns the refusal if we can't accept new calls at the moment.
 * @returns undefined if we can accept calls
 */
function currentRefusal(
  ports: IntakePorts,
  call: AcceptedCall,
  limits: IntakeLimits,
): SubmitResult | undefined {
  if (ports.isStopping()) {
    return { kind: 'unavailable', reason: 'this gateway is shutting down', retryAfterS };
  }
  // The count may be a second old, but the limit doesn't have to be exact. It only saves memory,
  // and spares clients long waits.
  const isFullNow = isFull(ports.taking.waiting(), call, ports, limits);
  return isFullNow ? { kind: 'full', retryAfterS } : undefined;
}

/** Returns the earlier result if the key has already been used, and otherwise the refusal. */
async function earlierResultOr(
  refusal: SubmitResult,
  { ledger, logger }: IntakePorts,
  call: AcceptedCall,
  { idempotency }: Submission,
): Promise<SubmitResult> {
  if (idempotency === undefined) return refusal;
  try {
    const earlier = await ledger.earlier(call, idempotency);
    if (earlier !== undefined || refusal.kind === 'full') return earlier ?? refusal;
    // We may still be storing the first request with this key.
    return { kind: 'unknown', reason: 'this gateway is shutting down', retryAfterS };
  } catch (error) {
    logger.error({ err: error }, 'an idempotency key could not be looked up');
    return { kind: 'unknown', reason: 'the key could not be looked up', retryAfterS };
  }
}

/**
 * Returns true if the queue is full, or if the trunk is too slow to dial this call before its queue
 * time-out.
 */
function isFull(
  waiting: ReadonlyMap<string | undefined, number>,
  { request }: AcceptedCall,
  { limitsOf }: IntakePorts,
  { maxQueued }: IntakeLimits,
): boolean {
  const all = [...waiting.values()].reduce((sum, count) => sum + count, 0);
  if (all >= maxQueued) return true;
  const rate = request.trunk === undefined ? undefined : limitsOf(request.trunk)?.callsPerSecond;
  if (rate === undefined) return false;
  const dialledInTime = Math.max(1, Math.floor((rate * request.queueTimeoutMs) / 1_000));
  return (waiting.get(request.trunk) ?? 0) >= dialledInTime;
}

async function accept(
  ports: IntakePorts,
  call: AcceptedCall,
  submission: Submission,
): Promise<SubmitResult> {
  const queued = queuedEvent(call);
  const queuedNotification = ports.queuedNotification(call, queued);
  const result = await ports.ledger.accept(call, {
    ...submission,
    ...(queuedNotification === undefined ? {} : { queuedNotification }),
    takeAlong: (count) => ports.taking.takeAlong(call.request.trunk, count),
  });
  if (result.kind === 'not-stored') return resultForUnstored(ports, submission, result);
  if (result.kind === 'refused') return refusalOf(result.limit, call.acceptedAt);
  if (result.kind !== 'accepted') return result;
  const { sid, callId, conversationId } = call;
  ports.onStored(queued, submission);
  ports.taking.accepted(call, result.isTaken === true);
  return { kind: 'accepted', answer: { sid, callId, conversationId, ...submission.remarks } };
}

/**
 * Returns the result for a request that wasn't stored. If the key may have been used before, the
 * result is `unknown`, because we may already have accepted the request, and only the database can
 * tell.
 */
function resultForUnstored(
  { logger }: IntakePorts,
  { idempotency }: Submission,
  { cause, isKeyNew }: Extract<AcceptResult, { kind: 'not-stored' }>,
): SubmitResult {
  logger.error({ err: cause }, 'dial-out request could not be stored');
  const kind = idempotency === undefined || isKeyNew === true ? 'unavailable' : 'unknown';
  return { kind, reason: 'the request could not be stored', retryAfterS };
}

/**
 * Returns the refusal for a request that exceeds an app limit. A daily limit resets at midnight
 * UTC, whereas a limit on concurrent calls may have room again at any moment.
 */
function refusalOf(limit: LimitName, at: Date): SubmitResult {
  if (limit === 'target') return targetForbidden;
  const untilMidnightS = Math.ceil((dayMs - (at.getTime() % dayMs)) / 1_000);
  const isDaily = limit === 'callsPerDay';
  return { kind: 'limit-reached', limit, retryAfterS: isDaily ? untilMidnightS : retryAfterS };
}

function acceptedCall(
  submission: Submission,
  acceptedAt: Date,
  { queueTimeoutMs }: IntakeLimits,
): AcceptedCall {
  const { appId, accountId, botId, request } = submission;
  return {
    callId: `call-${randomUUID()}` as CallId,
    sid: `sid-${randomUUID()}`,
    conversationId: randomUUID(),
    appId,
    accountId,
    botId,
    request: { ...request, queueTimeoutMs: request.queueTimeoutMs ?? queueTimeoutMs },
    acceptedAt,
  };
}
