// Sends one notification over HTTP and returns what became of it as a value. Connections are only made to addresses that the
// guard let pass. An attempt goes through:
//
// connecting  A connection is made, unless one is idle. Left when the request is written.
// asked       Left with the status line.
// answered    The status decides, whatever follows. The body is read so that the connection can be used again: at most 64 KiB
//             of it, for at most two seconds.
//
// The attempt's own timer ends each of them, whatever undici does. Then the connection is destroyed, so that nothing is written
// later and no receiver holds a connection for longer than one attempt may take.

import type { Client } from 'undici';
import { type AddressGuard, AddressNotAllowedError } from '../lib/address-guard.ts';
import { Connections } from './connections.ts';
import { type AttemptResult, parseRetryAfterS } from './delivery-rules.ts';

/** A whole attempt: connection, request, status line and body. */
const defaultTimeoutMs = 10_000;
/** What a receiver answers is not looked at: more of it is not worth keeping the connection. */
const maxReplyBytes = 64 * 1024;
/** The same in time. Short, because the call's next notification waits for it. */
const defaultReplyTimeoutMs = 2_000;

export type OutgoingNotification = {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Asked in the moment in which it is written: the connection may have taken long, and this process may have been stopped. */
  readonly mayBeSent: () => boolean;
};

export type NotificationSender = {
  /** Never rejects. Undefined: it was not allowed any more, and not a byte of it was written. */
  send(notification: OutgoingNotification): Promise<AttemptResult | undefined>;
  close(): Promise<void>;
};

export type SenderOptions = {
  readonly guard: AddressGuard;
  readonly timeoutMs?: number;
  /** For the body of the reply. */
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
  /** The reply was read to its end: the connection is free. */
  readonly isOver: boolean;
};

type Times = { readonly timeoutMs: number; readonly replyTimeoutMs: number };

/** Rejects where there was no status line. */
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
    isFree = exchange.isOver;
    return exchange;
  } finally {
    if (isFree) connections.giveBack(url.origin, client);
    else connections.destroy(client);
  }
}

/** Settles within the time, whatever the client does; unless the exchange is over the client is to be destroyed then. */
function post(
  client: Client,
  url: URL,
  { headers, body, mayBeSent }: OutgoingNotification,
  { timeoutMs, replyTimeoutMs }: Times,
): Promise<Exchange> {
  return new Promise((resolve, reject) => {
    let reply: Omit<Exchange, 'isOver'> | undefined;
    let replyBytes = 0;
    let replyTimer: NodeJS.Timeout | undefined;
    const end = (isOver: boolean, error?: unknown): void => {
      clearTimeout(timer);
      clearTimeout(replyTimer);
      if (reply === undefined) reject(error);
      else resolve({ ...reply, isOver });
    };
    const timer = setTimeout(end, timeoutMs, false, new TooLateError(timeoutMs));
    client.dispatch(
      { method: 'POST', path: `${url.pathname}${url.search}`, headers, body },
      {
        // Right before the first byte is written.
        onRequestStart: () => {
          if (!mayBeSent()) throw new WithheldError('not allowed to send any more');
        },
        onResponseStart: (_, status, replyHeaders) => {
          // One that only says that a reply will come.
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

class TooLateError extends Error {
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
    if (cause instanceof TooLateError) return { kind: 'unreachable', error: cause.message };
    if (cause instanceof AddressNotAllowedError) return notAllowed;
  }
  const code = errorCode(error);
  // The request itself cannot be written: the same next time.
  if (code === 'UND_ERR_INVALID_ARG') {
    return {
      kind: 'forbidden',
      error: 'the request cannot be sent: invalid URL or notifyHeaders',
    };
  }
  // A code and not a message: messages carry addresses of our network.
  return { kind: 'unreachable', error: code };
}

const notAllowed: AttemptResult = {
  kind: 'forbidden',
  error:
    'the address of the notification URL is private, local or reserved, and not in NOTIFY_ALLOWED_NETWORKS',
};

/** The error, what caused it, and, of attempts on several addresses, each. */
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
