// Sends one notification over HTTP and says what became of it, as a value. Connections are kept and bounded per
// receiver, and only made to addresses that the guard let pass.

import { Agent, DecoratorHandler, type Dispatcher, request } from 'undici';
import { type AddressGuard, AddressNotAllowedError } from '../lib/address-guard.ts';
import { type AttemptResult, parseRetryAfterS } from './delivery-rules.ts';

/** From the first byte of the connection to the status line. */
const defaultTimeoutMs = 10_000;
/** What a receiver answers is not read, only emptied, so that the connection can be used again. */
const maxReplyBytes = 64 * 1024;
/** Receivers kept open at once; beyond it new ones have to wait for idle ones to be closed. */
const maxOrigins = 5_000;

export type OutgoingNotification = {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Asked in the moment in which it is written: it may have waited for its connection, and this process may have been stopped. */
  readonly mayBeSent: () => boolean;
};

export type NotificationSender = {
  /** Never rejects. Undefined: it was not allowed any more, and not a byte of it was written. */
  send(notification: OutgoingNotification): Promise<AttemptResult | undefined>;
  close(): Promise<void>;
};

export type SenderOptions = {
  readonly guard: AddressGuard;
  readonly connectionsPerOrigin: number;
  readonly timeoutMs?: number;
  readonly now: () => number;
};

export function createSender(options: SenderOptions): NotificationSender {
  const timeoutMs = options.timeoutMs ?? defaultTimeoutMs;
  const agent = new Agent({
    connections: options.connectionsPerOrigin,
    pipelining: 1,
    maxOrigins,
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    connect: { timeout: timeoutMs, lookup: options.guard.lookup },
  });
  const dispatcher = agent.compose(withhold);
  return {
    send: async (notification) => {
      const url = URL.canParse(notification.url) ? new URL(notification.url) : undefined;
      if (url === undefined) return { kind: 'forbidden', error: 'the notification URL is invalid' };
      if (!options.guard.isHostAllowed(url)) return notAllowed;
      const deadline = new AbortController();
      const timer = setTimeout(() => deadline.abort(), timeoutMs);
      try {
        const response = await request(url, {
          method: 'POST',
          headers: notification.headers,
          body: notification.body,
          dispatcher,
          opaque: notification.mayBeSent,
          signal: deadline.signal,
        });
        // The status decides; the rest of the answer only has to be out of the way.
        response.body.dump({ limit: maxReplyBytes }).catch(() => undefined);
        return answered(response.statusCode, response.headers['retry-after'], options.now());
      } catch (error) {
        if (deadline.signal.aborted)
          return { kind: 'unreachable', error: `no response within ${timeoutMs} ms` };
        return failure(error);
      } finally {
        clearTimeout(timer);
      }
    },
    close: () => agent.destroy(),
  };
}

class WithheldError extends Error {}

const withhold: Dispatcher.DispatcherComposeInterceptor = (dispatch) => (options, handler) => {
  const { opaque } = options as { readonly opaque?: () => boolean };
  const checked: Dispatcher.DispatchHandler = new DecoratorHandler(handler);
  const start = checked.onRequestStart?.bind(checked);
  // undici starts a request right before it writes the first byte of it.
  checked.onRequestStart = (controller, context) => {
    if (opaque === undefined || opaque()) start?.(controller, context);
    else controller.abort(new WithheldError('not allowed to send any more'));
  };
  return dispatch(options, checked);
};

function answered(
  status: number,
  retryAfter: string | string[] | undefined,
  now: number,
): AttemptResult {
  const header = Array.isArray(retryAfter) ? retryAfter[0] : retryAfter;
  const retryAfterS = parseRetryAfterS(status, header, now);
  return { kind: 'response', status, ...(retryAfterS === undefined ? {} : { retryAfterS }) };
}

function failure(error: unknown): AttemptResult | undefined {
  for (const cause of causes(error)) {
    if (cause instanceof WithheldError) return undefined;
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
