// Attempts to deliver a notification. An attempt signs and sends the notification, decides what
// follows from the response, and builds the attempt's record.

import type { TraceHeaders } from '../lib/trace-context.ts';
import {
  type AttemptResult,
  type Consequence,
  judge,
  type PendingNotification,
  type RetrySchedule,
} from './delivery-rules.ts';
import type { NotificationSender } from './http-sender.ts';
import type { AttemptRecord } from './notification-store.ts';
import type { Recipient, SecretLookup } from './recipients.ts';
import { mergeHeaders, signatureHeaders } from './signature.ts';

export type DeliveryDeps = {
  readonly sender: NotificationSender;
  readonly secrets: SecretLookup;
  readonly schedule: RetrySchedule;
  readonly now: () => Date;
  readonly random: () => number;
  /** Version for the User-Agent header. */
  readonly version: string;
  /** Default: no spans, so attempts carry the trace headers from the call's request. */
  readonly trace?: TraceAttempt;
};

export type TraceAttempt = (
  parent: TraceHeaders | undefined,
  attempt: {
    readonly callId: string;
    readonly eventId: string;
    readonly sequence: number;
    /** Number of the attempt, from 1. */
    readonly attempt: number;
    readonly host: string;
  },
) => {
  /** Trace headers of this attempt, for the receiver. */
  readonly trace: TraceHeaders;
  end(result: { readonly status: number } | { readonly error: string }): void;
};

export type Delivery = {
  /** The notification as it was before the attempt. */
  readonly notification: PendingNotification;
  readonly result: AttemptResult;
  readonly verdict: Consequence;
  readonly record: AttemptRecord;
};

/** @returns undefined if `mayBeSent` returned false at the last moment, so nothing was sent */
export async function attemptDelivery(
  deps: DeliveryDeps,
  notification: PendingNotification,
  callId: string,
  recipient: Recipient | undefined,
  mayBeSent: () => boolean,
): Promise<Delivery | undefined> {
  const startedAt = deps.now();
  const result = await send(deps, notification, { callId, recipient, startedAt }, mayBeSent);
  if (result === undefined) return undefined;
  const at = deps.now();
  const attempts = notification.attempts + 1;
  const verdict = judge(
    result,
    { attempts: attempts - notification.attemptsBefore, owedSince: notification.owedSince },
    { now: at.getTime(), schedule: deps.schedule, random: deps.random() },
  );
  const record: AttemptRecord = {
    eventId: notification.eventId,
    callId,
    attempt: attempts,
    startedAt,
    durationMs: Math.max(0, at.getTime() - startedAt.getTime()),
    ...(result.kind === 'response' ? { responseStatus: result.status } : { error: result.error }),
    state: verdict.kind === 'retry' ? 'pending' : verdict.kind,
    at,
    ...(verdict.kind === 'failed' ? { failure: verdict.failure } : {}),
    refused: verdict.kind === 'retry' && verdict.fault === 'event',
  };
  return { notification, result, verdict, record };
}

type Attempt = {
  readonly callId: string;
  readonly recipient: Recipient | undefined;
  readonly startedAt: Date;
};

async function send(
  deps: DeliveryDeps,
  notification: PendingNotification,
  { callId, recipient, startedAt }: Attempt,
  mayBeSent: () => boolean,
): Promise<AttemptResult | undefined> {
  if (recipient?.notifyUrl === undefined) {
    return { kind: 'forbidden', error: 'the call and its notification URL are gone' };
  }
  let secrets: readonly string[];
  try {
    secrets = await deps.secrets(notification.appId);
  } catch {
    return { kind: 'unreachable', error: 'the webhook secret could not be read' };
  }
  // Never send an unsigned notification. A receiver that accepts unsigned ones trusts any sender.
  if (secrets.length === 0) {
    return { kind: 'unreachable', error: 'the application has no webhook secret' };
  }
  const signatures = signatureHeaders({
    eventId: notification.eventId,
    timestampS: Math.floor(startedAt.getTime() / 1_000),
    body: notification.body,
    secrets,
  });
  const { notifyUrl: url } = recipient;
  const { eventId, sequence, attempts } = notification;
  const span = deps.trace?.(recipient.trace, {
    ...{ callId, eventId, sequence, attempt: attempts + 1 },
    host: hostOf(url),
  });
  const headers = mergeHeaders(
    withTrace(recipient.notifyHeaders ?? {}, span?.trace ?? recipient.trace),
    {
      'content-type': 'application/json',
      'user-agent': `Offhook/${deps.version}`,
      ...signatures,
    },
  );
  const result = await deps.sender.send({ url, headers, body: notification.body, mayBeSent });
  span?.end(spanResult(result));
  return result;
}

/**
 * Adds the gateway's trace headers, unless the caller's headers contain a `traceparent`. The
 * caller's `traceparent` belongs to a different trace, so we mustn't combine it with our
 * `tracestate`.
 */
function withTrace(
  callerHeaders: Readonly<Record<string, string>>,
  trace: TraceHeaders | undefined,
): Readonly<Record<string, string>> {
  const hasCallerTrace = Object.keys(callerHeaders).some(
    (name) => name.toLowerCase() === 'traceparent',
  );
  return hasCallerTrace ? callerHeaders : { ...trace, ...callerHeaders };
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).hostname : '';
}

function spanResult(result: AttemptResult | undefined) {
  if (result === undefined) return { error: 'withheld' };
  return result.kind === 'response' ? { status: result.status } : { error: result.kind };
}
