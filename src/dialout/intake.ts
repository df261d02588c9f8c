// Takes a dial-out request in. It is accepted when SQL has it; the queue on JetStream only wakes a worker, and the sweep
// wakes one where that message was lost.

import { randomUUID } from 'node:crypto';
import { queuedFact } from '../calls/call-facts.ts';
import type { AcceptedCall, CallId } from '../calls/call-types.ts';
import type { DialoutAnswer, Intake, Submission, SubmitResult } from '../calls/dialout-ports.ts';
import type { Clock, EventPublisher } from '../calls/ports.ts';
import type { Logger } from '../lib/logger.ts';

export type IntakeLedger = {
  accept(
    call: AcceptedCall,
    extra: {
      readonly notifyHeaders?: Readonly<Record<string, string>>;
      readonly idempotency?: { readonly key: string; readonly requestHash: string };
    },
  ): Promise<
    | { readonly kind: 'accepted' }
    | { readonly kind: 'replayed'; readonly answer: DialoutAnswer }
    | { readonly kind: 'conflict' }
  >;
  queuedCount(): Promise<number>;
};

export type IntakePorts = {
  readonly ledger: IntakeLedger;
  readonly publisher: EventPublisher;
  readonly queue: { publish(callId: CallId): Promise<void>; connected(): boolean };
  readonly clock: Clock;
  readonly logger: Logger;
};

export type IntakeLimits = {
  /** Calls waiting to be dialled; one more is a 429. At the default rate of a trunk this is minutes, not hours. */
  readonly maxQueued: number;
};

/** How old the count of waiting calls may be: it guards memory and patience, not a contract. */
const queuedCountAgeMs = 1_000;
const retryAfterS = 5;

export function createIntake(ports: IntakePorts, limits: IntakeLimits): Intake {
  const queued = cachedCount(() => ports.ledger.queuedCount(), ports.clock);
  return {
    async submit(submission) {
      if (!ports.queue.connected()) return { kind: 'unavailable', what: 'NATS', retryAfterS };
      const call = acceptedCall(submission, ports.clock.now());
      try {
        if ((await queued()) >= limits.maxQueued) return { kind: 'full', retryAfterS };
        return await accept(ports, call, submission);
      } catch (error) {
        ports.logger.error({ err: error }, 'dial-out request could not be stored');
        return { kind: 'unavailable', what: 'the database', retryAfterS };
      }
    },
  };
}

async function accept(
  ports: IntakePorts,
  call: AcceptedCall,
  submission: Submission,
): Promise<SubmitResult> {
  const { notifyHeaders, idempotency } = submission;
  const result = await ports.ledger.accept(call, {
    ...(notifyHeaders === undefined ? {} : { notifyHeaders }),
    ...(idempotency === undefined ? {} : { idempotency }),
  });
  if (result.kind !== 'accepted') return result;
  const { sid, callId, conversationId } = call;
  // Not waited for: the request is safe in SQL, and the caller should not wait for the queue.
  const logged = (what: string) => (error: unknown) =>
    ports.logger.warn({ err: error, callId, what }, 'publish failed');
  ports.publisher.publish(queuedFact(call)).catch(logged('queued'));
  ports.queue.publish(callId).catch(logged('queue'));
  return { kind: 'accepted', answer: { sid, callId, conversationId } };
}

function acceptedCall(submission: Submission, acceptedAt: Date): AcceptedCall {
  const { appId, accountId, botId, request } = submission;
  return {
    callId: `call-${randomUUID()}` as CallId,
    sid: `sid-${randomUUID()}`,
    conversationId: randomUUID(),
    appId,
    accountId,
    botId,
    request,
    acceptedAt,
  };
}

function cachedCount(count: () => Promise<number>, clock: Clock): () => Promise<number> {
  let known = 0;
  let askedAt = Number.NEGATIVE_INFINITY;
  return async () => {
    const now = clock.now().getTime();
    if (now - askedAt > queuedCountAgeMs) {
      askedAt = now;
      known = await count();
    }
    return known;
  };
}
