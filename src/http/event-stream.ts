// Server-sent events: an answer that goes on (HTML, section 9.2). How many an app may have open, and what becomes of one whose reader
// does not read.

import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from '../lib/logger.ts';
import type { ApiInstance } from './http.ts';
import { ProblemError } from './problem.ts';

/** Of one app, at one gateway: some screens and some programs. */
export const mostConnections = 50;

export type EventSource = (how: {
  readonly signal: AbortSignal;
  readonly onTooSlow: () => void;
}) => AsyncIterable<readonly { readonly text: string }[]>;

export type EventStreams = {
  /** Holds one of the app's places while the work runs. @throws ProblemError where it has none left */
  within<Result>(appId: string, work: () => Promise<Result>): Promise<Result>;
  /** Answers with what the source has, until the reader leaves, is too slow, or may no longer read. */
  send(
    request: FastifyRequest,
    reply: FastifyReply,
    appId: string,
    source: EventSource,
  ): Promise<void>;
  /** Aborted when the gateway closes. */
  readonly closing: AbortSignal;
};

export type EventStreamOptions = {
  /** Asked at each piece that is sent, a quiet while's comment included. */
  readonly mayRead: (appId: string) => Promise<boolean>;
  readonly logger: Logger;
};

export function createEventStreams(
  server: ApiInstance,
  { mayRead, logger }: EventStreamOptions,
): EventStreams {
  const open = new Map<string, number>();
  const closing = new AbortController();
  // A reader that stays would hold the server's close up.
  server.addHook('preClose', async () => closing.abort());

  const within: EventStreams['within'] = async (appId, work) => {
    const count = open.get(appId) ?? 0;
    if (count >= mostConnections) throw tooMany();
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
        // The first piece decides whether there is a stream at all: until then an error is a problem document.
        const first = await pieces.next();
        reply.hijack();
        raw.writeHead(200, headersFor(request));
        const mayGoOn = async () => !signal.aborted && (await mayRead(appId));
        await pump({ raw, signal, mayGoOn }, pieces, first).catch((error: unknown) => {
          if (!signal.aborted) logger.warn({ err: error }, 'a stream of events broke off');
        });
        await pieces.return?.();
        raw.end();
      }),
  };
}

type Sink = {
  readonly raw: ServerResponse;
  readonly signal: AbortSignal;
  readonly mayGoOn: () => Promise<boolean>;
};

async function pump(
  { raw, signal, mayGoOn }: Sink,
  pieces: AsyncIterator<readonly { readonly text: string }[]>,
  first: IteratorResult<readonly { readonly text: string }[]>,
): Promise<void> {
  let piece = first;
  while (piece.done !== true && (await mayGoOn())) {
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
    // Nothing follows on it: one that is kept alive would hold the gateway's end up.
    connection: 'close',
    // nginx would hold events back until its buffer is full.
    'x-accel-buffering': 'no',
  };
}

function tooMany(): ProblemError {
  return new ProblemError(
    'too-many-requests',
    `The app has ${mostConnections} connections for events open at this gateway.`,
    { retryAfterS: 15 },
  );
}

/** Of a header that may have been sent twice, or of an EventSource that came back. */
export function lastEventId(request: FastifyRequest): string | undefined {
  const header = request.headers['last-event-id'];
  const text = typeof header === 'string' ? header.trim() : undefined;
  return text === '' ? undefined : text;
}
