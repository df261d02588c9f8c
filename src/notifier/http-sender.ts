// Sends one notification over HTTP and returns the result as a value instead of throwing errors.
// The sender connects only to addresses that the guard allows. An attempt has these states:
//
// connecting  We open a connection, or reuse an idle one. Ends once the request has been written.
// waiting     The request has been sent. Ends when the status line arrives.
// reading     The status code has already decided the result, so we read the body only in order to
//             reuse the connection. We read at most 64 KiB, for at most two seconds.
//
// Our own timer bounds all three states, no matter what undici does. When the timer fires, we
// destroy the connection, which means that nothing is written later and no receiver can keep a
// connection open for longer than an attempt may take.

import { LRUCache } from 'lru-cache';
import type { Client } from 'undici';
import { type AddressGuard, AddressNotAllowedError } from '../lib/address-guard.ts';
import { Connections } from './connections.ts';
import { type AttemptResult, parseRetryAfterS } from './delivery-rules.ts';

/** Time-out for the whole attempt, including the connection, request, status line and body. */
const defaultTimeoutMs = 10_000;
/** If a response body is larger, a new connection is cheaper than reading the rest of the body. */
const maxBodyBytes = 64 * 1024;
/** Most processes send to a few URLs. Parsing one and checking its address costs 30 µs. */
const maxKnownUrls = 1_000;
/** This time-out is short, because the call's next notification has to wait for the body. */
const defaultBodyTimeoutMs = 2_000;

export type OutgoingNotification = {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /**
   * Called right before we write the request, because connecting may have taken a while and the
   * process may have been suspended in the meantime.
   */
  readonly mayBeSent: () => boolean;
};

export type NotificationSender = {
  /**
   * Never rejects.
   *
   * @returns undefined if `mayBeSent` returned false, in which case nothing was written
   */
  send(notification: OutgoingNotification): Promise<AttemptResult | undefined>;
  close(): Promise<void>;
};

export type SenderOptions = {
  readonly guard: AddressGuard;
  readonly timeoutMs?: number;
  /** Time-out for the response body. */
  readonly replyTimeoutMs?: number;
  readonly now: () => number;
};

export function createSender(options: SenderOptions): NotificationSender {
  const { timeoutMs = defaultTimeoutMs, replyTimeoutMs = defaultBodyTimeoutMs } = options;
  const times = { timeoutMs, replyTimeoutMs };
  const connections = new Connections(options.guard, timeoutMs);
  const receiverOf = createReceiverLookup(options.guard);
  return {
    send: async (notification) => {
      const receiver = receiverOf(notification.url);
      if ('kind' in receiver) return receiver;
      try {
        const exchange = await exchangeWith(connections, receiver, notification, times);
        return toResult(exchange, options.now());
      } catch (error) {
        return toFailure(error);
      }
    },
    close: async () => connections.close(),
  };
}

/** Where a notification is sent. Its address is checked again when we connect. */
type Receiver = { readonly origin: string; readonly path: string };
type Forbidden = Extract<AttemptResult, { readonly kind: 'forbidden' }>;

function createReceiverLookup(guard: AddressGuard): (url: string) => Receiver | Forbidden {
  const known = new LRUCache<string, Receiver | Forbidden>({ max: maxKnownUrls });
  return (text) => {
    const receiver = known.get(text) ?? receiverAt(text, guard);
    known.set(text, receiver);
    return receiver;
  };
}

function receiverAt(text: string, guard: AddressGuard): Receiver | Forbidden {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) return { kind: 'forbidden', error: 'the notification URL is invalid' };
  if (!guard.isHostAllowed(url)) return notAllowed;
  return { origin: url.origin, path: `${url.pathname}${url.search}` };
}

class WithheldError extends Error {}

type Exchange = {
  readonly status: number;
  readonly retryAfter: string | string[] | undefined;
  /** True if the response has been read to the end, so the connection can be reused. */
  readonly isComplete: boolean;
};

type Times = { readonly timeoutMs: number; readonly replyTimeoutMs: number };

/** @throws if no status line arrived */
async function exchangeWith(
  connections: Connections,
  receiver: Receiver,
  notification: OutgoingNotification,
  times: Times,
): Promise<Exchange> {
  const client = connections.take(receiver.origin);
  let isFree = false;
  try {
    const exchange = await post(client, receiver.path, notification, times);
    isFree = exchange.isComplete;
    return exchange;
  } finally {
    if (isFree) connections.giveBack(receiver.origin, client);
    else connections.destroy(client);
  }
}

/**
 * Settles within the time-out, no matter what the client does. Afterwards the caller must destroy
 * the client unless `isComplete` is true.
 */
function post(
  client: Client,
  path: string,
  { headers, body, mayBeSent }: OutgoingNotification,
  { timeoutMs, replyTimeoutMs }: Times,
): Promise<Exchange> {
  return new Promise((resolve, reject) => {
    let response: Omit<Exchange, 'isComplete'> | undefined;
    let bodyBytes = 0;
    let bodyTimer: NodeJS.Timeout | undefined;
    const end = (isComplete: boolean, error?: unknown): void => {
      clearTimeout(timer);
      clearTimeout(bodyTimer);
      if (response === undefined) reject(error);
      else resolve({ ...response, isComplete });
    };
    const timer = setTimeout(() => end(false, new AttemptTimeoutError(timeoutMs)), timeoutMs);
    client.dispatch(
      { method: 'POST', path, headers, body },
      {
        // Called right before the first byte is written.
        onRequestStart: () => {
          if (!mayBeSent()) throw new WithheldError('not allowed to send any more');
        },
        onResponseStart: (_, status, responseHeaders) => {
          // Skip provisional responses (1xx).
          if (status < 200) return;
          response = { status, retryAfter: responseHeaders['retry-after'] };
          bodyTimer = setTimeout(end, replyTimeoutMs, false);
        },
        onResponseData: (_, chunk) => {
          bodyBytes += chunk.length;
          if (bodyBytes > maxBodyBytes) end(false);
        },
        onResponseEnd: () => end(true),
        onResponseError: (_, error) => end(false, error),
      },
    );
  });
}

class AttemptTimeoutError extends Error {
  constructor(timeoutMs: number) {
    super(`no response within ${timeoutMs} ms`);
  }
}

function toResult({ status, retryAfter }: Exchange, now: number): AttemptResult {
  const header = Array.isArray(retryAfter) ? retryAfter[0] : retryAfter;
  const retryAfterS = parseRetryAfterS(status, header, now);
  return { kind: 'response', status, ...(retryAfterS === undefined ? {} : { retryAfterS }) };
}

function toFailure(error: unknown): AttemptResult | undefined {
  for (const cause of causes(error)) {
    if (cause instanceof WithheldError) return undefined;
    if (cause instanceof AttemptTimeoutError) return { kind: 'unreachable', error: cause.message };
    if (cause instanceof AddressNotAllowedError) return notAllowed;
  }
  const code = errorCode(error);
  // undici itself rejects the request, so a retry would fail the same way.
  if (code === 'UND_ERR_INVALID_ARG') {
    return {
      kind: 'forbidden',
      error: 'the request cannot be sent: invalid URL or notifyHeaders',
    };
  }
  // Use only the code, because error messages contain addresses from our network.
  return { kind: 'unreachable', error: code };
}

const notAllowed: Forbidden = {
  kind: 'forbidden',
  error:
    'the address of the notification URL is private, local or reserved, and not in NOTIFY_ALLOWED_NETWORKS',
};

/** Returns the error, its cause and, if several addresses were tried, the error for each. */
function causes(error: unknown): readonly unknown[] {
  const members: readonly unknown[] = error instanceof AggregateError ? error.errors : [];
  const cause = error instanceof Error ? error.cause : undefined;
  return [error, cause, ...members];
}

function errorCode(error: unknown): string {
  for (const candidate of causes(error)) {
    if (typeof candidate !== 'object' || candidate === null || !('code' in candidate)) continue;
    if (typeof candidate.code === 'string') return candidate.code;
  }
  return error instanceof Error ? error.name : 'unknown error';
}
