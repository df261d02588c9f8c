// Accepts a dial-out request. A request is accepted when SQL has stored it. Then this process takes
// the call at once, or wakes another process.

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
  readonly taking: Pick<CallTaking, 'accepted' | 'waiting'>;
  readonly limitsOf: (trunk: string) => TrunkLimits | undefined;
  /** @returns undefined if the request does not select the call's first event */
  readonly queuedNotification: (
    call: AcceptedCall,
    queued: CallEvent,
  ) => QueuedNotification | undefined;
  /** Called when the call and its first event are stored. The event is to be published now. */
  readonly onStored: (event: CallEvent, submission: Submission) => void;
  /**
   * True while this process finishes its last calls. A call that it accepted then would wait for
   * the next process.
   */
  readonly isStopping: () => boolean;
  readonly clock: Clock;
  readonly logger: Logger;
};

export type IntakeLimits = {
  /**
   * Largest number of calls that wait to be dialled. One more is refused with 429. At the default
   * rate of a trunk they wait minutes, not hours.
   */
  readonly maxQueued: number;
  /** Default for requests that set no queue time-out. */
  readonly queueTimeoutMs: number;
};

const retryAfterS = 5;
const targetForbidden = { kind: 'target-forbidden' } as const;
const dayMs = 86_400_000;

export function createIntake(ports: IntakePorts, limits: IntakeLimits): Intake {
  return {
    async submit(submission) {
      // A request with a key may repeat one that was accepted before. Only the ledger knows.
      const { limits: allowed, idempotency, request } = submission;
      const mayDialAll = targetsOf(request).every((target) => mayDial(allowed, target));
      if (idempotency === undefined && !mayDialAll) return targetForbidden;
      const call = acceptedCall(submission, ports.clock.now(), limits);
      const refusal = currentRefusal(ports, call, limits);
      if (refusal !== undefined) return await earlierAnswerOr(refusal, ports, call, submission);
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
 * Returns why no new call is accepted now.
 * @returns undefined if calls are accepted
 */
function currentRefusal(
  ports: IntakePorts,
  call: AcceptedCall,
  limits: IntakeLimits,
): SubmitResult | undefined {
  if (ports.isStopping()) {
    return { kind: 'unavailable', reason: 'this gateway is shutting down', retryAfterS };
  }
  // The count may be a second old. The bound protects memory and the callers' time; it is not an
  // exact limit.
  const isFullNow = isFull(ports.taking.waiting(), call, ports, limits);
  return isFullNow ? { kind: 'full', retryAfterS } : undefined;
}

/** Returns the earlier answer if the key was used before, and otherwise the refusal. */
async function earlierAnswerOr(
  refusal: SubmitResult,
  { ledger, logger }: IntakePorts,
  call: AcceptedCall,
  { idempotency }: Submission,
): Promise<SubmitResult> {
  if (idempotency === undefined) return refusal;
  try {
    const earlier = await ledger.earlier(call, idempotency);
    if (earlier !== undefined || refusal.kind === 'full') return earlier ?? refusal;
    // The first request with this key may be being stored at this moment.
    return { kind: 'unknown', reason: 'this gateway is shutting down', retryAfterS };
  } catch (error) {
    logger.error({ err: error }, 'an idempotency key could not be looked up');
    return { kind: 'unknown', reason: 'the key could not be looked up', retryAfterS };
  }
}

/**
 * Returns true if the queue of all calls is full. Also returns true if the trunk has a rate at
 * which it could not dial this call in time.
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
  });
  if (result.kind === 'not-stored') return notStored(ports, submission, result);
  if (result.kind === 'refused') return refusalOf(result.limit, call.acceptedAt);
  if (result.kind !== 'accepted') return result;
  const { sid, callId, conversationId } = call;
  ports.onStored(queued, submission);
  ports.taking.accepted(call);
  return { kind: 'accepted', answer: { sid, callId, conversationId, ...submission.remarks } };
}

/**
 * Reports that the request was not stored. With a key that is not known to be new, the result is
 * `unknown`: the request may have been accepted before, and only a database that answers can tell.
 */
function notStored(
  { logger }: IntakePorts,
  { idempotency }: Submission,
  { cause, isKeyNew }: Extract<AcceptResult, { kind: 'not-stored' }>,
): SubmitResult {
  logger.error({ err: cause }, 'dial-out request could not be stored');
  const kind = idempotency === undefined || isKeyNew === true ? 'unavailable' : 'unknown';
  return { kind, reason: 'the request could not be stored', retryAfterS };
}

/**
 * Refuses a call over a limit of the app. A daily limit ends at midnight UTC. A limit on concurrent
 * calls may end at any moment.
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
