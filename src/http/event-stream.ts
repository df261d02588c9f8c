// Sends server-sent events (HTML standard, section 9.2). We limit how many streams an app may have
// open, and disconnect clients that don't read.

import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from '../lib/logger.ts';
import type { ApiInstance } from './http.ts';
import { ProblemError } from './problem.ts';

/**
 * Each app may have this many streams open at one gateway, which is enough for a few screens and
 * programs.
 */
export const maxConnections = 50;

export type EventSource = (options: {
  readonly signal: AbortSignal;
  readonly onTooSlow: () => void;
}) => AsyncIterable<readonly { readonly text: string }[]>;

export type EventStreams = {
  /**
   * Occupies one of the app's connections while `work` is running.
   *
   * @throws ProblemError if the app already has too many connections
   */
  within<Result>(appId: string, work: () => Promise<Result>): Promise<Result>;
  /** Streams the source's events until the client leaves, falls too far behind, or loses access. */
  send(
    request: FastifyRequest,
    reply: FastifyReply,
    appId: string,
    source: EventSource,
  ): Promise<void>;
  /** Aborted when the gateway is closing. */
  readonly closing: AbortSignal;
};

export type EventStreamOptions = {
  /**
   * Checks that the app still has access. We call this before each chunk, including keep-alive
   * comments.
   */
  readonly mayRead: (appId: string) => Promise<boolean>;
  readonly logger: Logger;
};

export function createEventStreams(
  server: ApiInstance,
  { mayRead, logger }: EventStreamOptions,
): EventStreams {
  const open = new Map<string, number>();
  const closing = new AbortController();
  // Without this, a client that stays connected would delay the server's close.
  server.addHook('preClose', async () => closing.abort());

  const within: EventStreams['within'] = async (appId, work) => {
    const count = open.get(appId) ?? 0;
    if (count >= maxConnections) throw tooMany();
    open.set(appId, count + 1);
    try {
      return await work();
    } finally {
      const left = (open.get(appId) ?? 1) - 1;
      if (left === 0) open.delete(appId);
      else open.set(appId, left);
    }
  };

  return {
    within,
    closing: closing.signal,
    send: (request, reply, appId, source) =>
      within(appId, async () => {
        const { raw } = reply;
        const left = new AbortController();
        raw.on('close', () => left.abort());
        const signal = AbortSignal.any([left.signal, closing.signal]);
        const pieces = source({ signal, onTooSlow: () => raw.destroy() })[Symbol.asyncIterator]();
        // The status goes out with the first chunk, so we can still turn an earlier error into a
        // problem.
        const first = await pieces.next();
        reply.hijack();
        raw.writeHead(200, headersFor(request));
        const mayContinue = async () => !signal.aborted && (await mayRead(appId));
        await pump({ raw, signal, mayContinue }, pieces, first).catch((error: unknown) => {
          if (!signal.aborted) logger.warn({ err: error }, 'an event stream broke off');
        });
        await pieces.return?.();
        raw.end();
      }),
  };
}

type Sink = {
  readonly raw: ServerResponse;
  readonly signal: AbortSignal;
  readonly mayContinue: () => Promise<boolean>;
};

async function pump(
  { raw, signal, mayContinue }: Sink,
  pieces: AsyncIterator<readonly { readonly text: string }[]>,
  first: IteratorResult<readonly { readonly text: string }[]>,
): Promise<void> {
  let piece = first;
  while (piece.done !== true && (await mayContinue())) {
    const text = piece.value.map((chunk) => chunk.text).join('');
    if (!raw.write(text)) await once(raw, 'drain', { signal });
    piece = await pieces.next();
  }
}

function headersFor(request: FastifyRequest): Record<string, string> {
  return {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
    'x-request-id': request.id,
    // No request follows a stream, so keeping the connection alive would only delay the shutdown.
    connection: 'close',
    // Without this header, nginx buffers events.
    'x-accel-buffering': 'no',
  };
}

function tooMany(): ProblemError {
  return new ProblemError(
    'too-many-requests',
    `The app already has ${maxConnections} event connections open at this gateway.`,
    { retryAfterS: 15 },
  );
}

/**
 * Returns the `Last-Event-ID` header of a client that is reconnecting.
 *
 * @returns undefined if the header is missing or occurs twice
 */
export function lastEventId(request: FastifyRequest): string | undefined {
  const header = request.headers['last-event-id'];
  const text = typeof header === 'string' ? header.trim() : undefined;
  return text === '' ? undefined : text;
}
