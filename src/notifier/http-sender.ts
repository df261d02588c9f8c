// Sends one notification over HTTP and returns the result as a value. The sender connects only to
// addresses that the guard allows. States of an attempt:
//
// connecting  Opens a connection, or takes an idle one. Ends when the request is written.
// asked       The request is sent. Ends when the status line arrives.
// answered    The status has decided the result. The sender only reads the body so that it can
//             reuse the connection: at most 64 KiB, for at most two seconds.
//
// One timer of our own bounds all three states, whatever undici does. When it fires, the connection
// is destroyed. So nothing is written later, and no receiver holds a connection for longer than an
// attempt may take.

import type { Client } from 'undici';
import { type AddressGuard, AddressNotAllowedError } from '../lib/address-guard.ts';
import { Connections } from './connections.ts';
import { type AttemptResult, parseRetryAfterS } from './delivery-rules.ts';

/** Time-out of a whole attempt: connection, request, status line and body. */
const defaultTimeoutMs = 10_000;
/** Maximum size of a reply's body. Beyond it, a new connection is cheaper than reading on. */
const maxReplyBytes = 64 * 1024;
/** Time-out for a reply's body. It is short because the call's next notification waits for it. */
const defaultReplyTimeoutMs = 2_000;

export type OutgoingNotification = {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /**
   * Called right before the request is written: connecting may have taken long, and the process may
   * have stood still meanwhile.
   */
  readonly mayBeSent: () => boolean;
};

export type NotificationSender = {
  /**
   * Never rejects.
   *
   * @returns undefined if no byte was written because `mayBeSent` returned false
   */
  send(notification: OutgoingNotification): Promise<AttemptResult | undefined>;
  close(): Promise<void>;
};

export type SenderOptions = {
  readonly guard: AddressGuard;
  readonly timeoutMs?: number;
  /** Time-out for the body of the reply. */
  readonly replyTimeoutMs?: number;
  readonly now: () => number;
};

export function createSender(options: SenderOptions): NotificationSender {
  const { timeoutMs = defaultTimeoutMs, replyTimeoutMs = defaultReplyTimeoutMs } = options;
  const times = { timeoutMs, replyTimeoutMs };
  const connections = new Connections(options.guard, timeoutMs);
  return {
    send: async (notification) => {
      const url = URL.canParse(notification.url) ? new URL(notification.url) : undefined;
      if (url === undefined) return { kind: 'forbidden', error: 'the notification URL is invalid' };
      if (!options.guard.isHostAllowed(url)) return notAllowed;
      try {
        const exchange = await exchangeWith(connections, url, notification, times);
        return answered(exchange, options.now());
      } catch (error) {
        return failure(error);
      }
    },
    close: async () => connections.close(),
  };
}

class WithheldError extends Error {}

type Exchange = {
  readonly status: number;
  readonly retryAfter: string | string[] | undefined;
  /** True if the reply was read to its end, so that the connection can be reused. */
  readonly isComplete: boolean;
};

type Times = { readonly timeoutMs: number; readonly replyTimeoutMs: number };

/** @throws if no status line arrived */
async function exchangeWith(
  connections: Connections,
  url: URL,
  notification: OutgoingNotification,
  times: Times,
): Promise<Exchange> {
  const client = connections.take(url.origin);
  let isFree = false;
  try {
    const exchange = await post(client, url, notification, times);
    isFree = exchange.isComplete;
    return exchange;
  } finally {
    if (isFree) connections.giveBack(url.origin, client);
    else connections.destroy(client);
  }
}

/**
 * Settles within the time-out, whatever the client does. The caller must then destroy the client,
 * unless `isComplete` is true.
 */
function post(
  client: Client,
  url: URL,
  { headers, body, mayBeSent }: OutgoingNotification,
  { timeoutMs, replyTimeoutMs }: Times,
): Promise<Exchange> {
  return new Promise((resolve, reject) => {
    let reply: Omit<Exchange, 'isComplete'> | undefined;
    let replyBytes = 0;
    let replyTimer: NodeJS.Timeout | undefined;
    const end = (isComplete: boolean, error?: unknown): void => {
      clearTimeout(timer);
      clearTimeout(replyTimer);
      if (reply === undefined) reject(error);
      else resolve({ ...reply, isComplete });
    };
    const timer = setTimeout(end, timeoutMs, false, new AttemptTimeoutError(timeoutMs));
    client.dispatch(
      { method: 'POST', path: `${url.pathname}${url.search}`, headers, body },
      {
        // Called right before the first byte is written.
        onRequestStart: () => {
          if (!mayBeSent()) throw new WithheldError('not allowed to send any more');
        },
        onResponseStart: (_, status, replyHeaders) => {
          // A provisional response (1xx) is not the reply.
          if (status < 200) return;
          reply = { status, retryAfter: replyHeaders['retry-after'] };
          replyTimer = setTimeout(end, replyTimeoutMs, false);
        },
        onResponseData: (_, chunk) => {
          replyBytes += chunk.length;
          if (replyBytes > maxReplyBytes) end(false);
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

function answered({ status, retryAfter }: Exchange, now: number): AttemptResult {
  const header = Array.isArray(retryAfter) ? retryAfter[0] : retryAfter;
  const retryAfterS = parseRetryAfterS(status, header, now);
  return { kind: 'response', status, ...(retryAfterS === undefined ? {} : { retryAfterS }) };
}

function failure(error: unknown): AttemptResult | undefined {
  for (const cause of causes(error)) {
    if (cause instanceof WithheldError) return undefined;
    if (cause instanceof AttemptTimeoutError) return { kind: 'unreachable', error: cause.message };
    if (cause instanceof AddressNotAllowedError) return notAllowed;
  }
  const code = errorCode(error);
  // undici rejects the request itself. A retry would fail in the same way.
  if (code === 'UND_ERR_INVALID_ARG') {
    return {
      kind: 'forbidden',
      error: 'the request cannot be sent: invalid URL or notifyHeaders',
    };
  }
  // Only the code, because messages contain addresses of our network.
  return { kind: 'unreachable', error: code };
}

const notAllowed: AttemptResult = {
  kind: 'forbidden',
  error:
    'the address of the notification URL is private, local or reserved, and not in NOTIFY_ALLOWED_NETWORKS',
};

/** Returns the error, its cause and, if several addresses were tried, the error of each. */
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
