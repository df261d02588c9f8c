// One control connection to a drachtio server, from authentication until it closes. Links are never
// reused.
//
// The link opens the sockets itself and passes them to srf ("outbound mode"). This way:
// - srf doesn't reconnect on its own,
// - a frame that srf can't parse closes this connection instead of throwing in a socket callback,
// - we can close the connection when a pong is missing.

import { connect, Server, type Socket } from 'node:net';
import Srf from 'drachtio-srf';
import type { SipMessage } from '../../calls/capture/capture.ts';
import type { DrachtioServer } from '../../config.ts';
import { onEveryBeat } from '../../lib/beat.ts';
import type { Logger } from '../../lib/logger.ts';
import {
  acceptedTypes,
  allowHeader,
  capabilityHeaders,
  missingExtensions,
} from '../capabilities.ts';
import { maxFrameBytes, type SipLimits } from './sip-limits.ts';
import { sipMessageOf } from './sip-tap.ts';
import type {
  ReceivedRequest,
  RequestOptions,
  Responder,
  SentRequest,
  SrfClient,
} from './srf-types.ts';

/**
 * Owner of pending requests on a link. When the link is lost, the owner must settle all of them.
 */
export type LinkOwner = {
  onLinkLost(reason: string): void;
};

/** Answers the far end's requests inside a dialog. */
export type DialogOwner = {
  onRequest(request: ReceivedRequest, response: Responder): void;
};

export type RequestResult =
  | { readonly ok: true; readonly request: SentRequest }
  /** The engine rejected the request (NOK). */
  | { readonly ok: false; readonly reason: string };

export type LinkOptions = {
  readonly server: DrachtioServer;
  readonly limits: SipLimits;
  readonly logger: Logger;
  /**
   * Whether to answer INVITE and OPTIONS outside of this process's dialogs. False if other
   * applications share the server.
   */
  readonly takesUnsolicited: boolean;
  /**
   * Receives every SIP message that passes through this link. Default: the messages aren't read.
   */
  readonly onMessage?: ((message: SipMessage) => void) | undefined;
  readonly onUp: () => void;
  /** Called exactly once, even if the link never came up. */
  readonly onDown: (reason: string) => void;
};

/**
 * drachtio refuses each method without a route with 503, which tells a carrier that we're in
 * trouble. RFC 3261, section 8.2.1, requires a 405.
 */
const unsolicitedMethods = [
  'invite',
  'options',
  'info',
  'message',
  'notify',
  'publish',
  'refer',
  'register',
  'subscribe',
] as const;

export class EngineLink {
  /**
   * Address of the control connection. It's stored with each leg, so it never contains the secret.
   */
  readonly engine: string;
  readonly dialogs = new Map<string, DialogOwner>();
  readonly #options: LinkOptions;
  readonly #socket: Socket;
  readonly #srf: SrfClient;
  readonly #owners = new Set<LinkOwner>();
  #state: 'opening' | 'up' | 'down' = 'opening';
  #openTimer: NodeJS.Timeout | undefined;
  #stopPings: (() => void) | undefined;
  #pingSentAt: number | undefined;

  constructor(options: LinkOptions) {
    this.#options = options;
    const { host, port, secret } = options.server;
    this.engine = engineName(options.server);
    this.#srf = new Srf() as unknown as SrfClient;
    const fakeServer = new Server();
    this.#srf.listen({ server: fakeServer, secret });
    this.#srf.on('connect', (error) => this.#onAuthenticated(error));
    this.#srf.on('error', (error) => this.close(error.message));
    this.#srf.use((request, response) => this.#onRequest(request, response));
    this.#tap();

    this.#socket = connect({ host, port, noDelay: true });
    guardFrames(this.#socket, (bytes) =>
      options.logger.error({ engine: this.engine, bytes }, 'control frame over the limit dropped'),
    );
    this.#socket.once('connect', () => fakeServer.emit('connection', this.#socket));
    this.#socket.on('error', (error) => this.#onDown(error.message));
    this.#socket.once('end', () => this.#onDown('connection closed by the engine'));
    this.#socket.once('close', () => this.#onDown('connection closed'));
    this.#openTimer = setTimeout(
      () => this.close('no connection within the time-out'),
      options.limits.connectTimeoutMs,
    );
  }

  get isUp(): boolean {
    return this.#state === 'up';
  }

  attach(owner: LinkOwner): void {
    this.#owners.add(owner);
  }

  detach(owner: LinkOwner): void {
    this.#owners.delete(owner);
  }

  /**
   * Passes a request to the engine. `callback` receives the engine's OK or NOK before any response
   * arrives. Note that srf may never call it, so callers need a time-out of their own, and must
   * attach an owner in order to be notified of a lost link.
   */
  request(options: RequestOptions, callback: (result: RequestResult) => void): void {
    if (this.#state !== 'up') {
      queueMicrotask(() => callback({ ok: false, reason: 'drachtio connection lost' }));
      return;
    }
    // If the connection has just closed, srf can't find the socket in its map and fails an
    // assertion.
    try {
      this.#srf.request(
        this.#socket,
        escapeUser(options.uri ?? 'sip:placeholder'),
        options,
        guarded(this.#options.logger, (error, request) => {
          if (request !== undefined && error === null) callback({ ok: true, request });
          else callback({ ok: false, reason: error?.message ?? 'request refused by the engine' });
        }),
      );
    } catch (error) {
      const reason = error instanceof Error ? error.message : 'request failed';
      queueMicrotask(() => callback({ ok: false, reason }));
    }
  }

  close(reason: string): void {
    this.#socket.destroy();
    this.#onDown(reason);
  }

  #onAuthenticated(error: Error | null): void {
    if (this.#state !== 'opening') return;
    if (error !== null) {
      this.close('the engine refused the secret');
      return;
    }
    clearTimeout(this.#openTimer);
    this.#state = 'up';
    if (this.#options.takesUnsolicited) {
      // These calls only register the routes. The handler that we passed to `use` runs first, and
      // gets the actual requests.
      for (const method of unsolicitedMethods) this.#srf[method](() => undefined);
    }
    this.#stopPings = onEveryBeat(this.#options.limits.pingIntervalMs, () => this.#ping());
    this.#options.onUp();
  }

  /**
   * Reads every frame after srf's own listener has handled it. By then, the sender of a request
   * already knows its Call-ID.
   */
  #tap(): void {
    const { onMessage, logger } = this.#options;
    if (onMessage === undefined) return;
    let arrivedAt = new Date();
    const report = guarded(logger, (frame: string) => {
      const message = sipMessageOf(frame, arrivedAt);
      if (message !== undefined) onMessage(message);
    });
    const { wp } = this.#srf.app.client;
    // Read the clock before any other listener starts working on the frame.
    wp.prependListener('msg', () => {
      arrivedAt = new Date();
    });
    wp.on('msg', (_socket, frame) => report(frame));
  }

  /** Sends a ping and waits for the pong. Srf's own ping ignores a missing pong. */
  #ping(): void {
    if (this.#pingSentAt !== undefined) {
      const silentForMs = performance.now() - this.#pingSentAt;
      if (silentForMs < this.#options.limits.pongTimeoutMs) return;
      // Timers run before Node reads the sockets. If this process was paused for a long time, the
      // pong may already be waiting in the socket, so we check again after the sockets.
      setImmediate(() => {
        if (this.#pingSentAt !== undefined) this.close('no answer to ping');
      });
      return;
    }
    const { wp, mapServer } = this.#srf.app.client;
    const pending = mapServer.get(this.#socket)?.pendingRequests;
    if (pending === undefined) return;
    this.#pingSentAt = performance.now();
    pending.set(wp.send(this.#socket, 'ping'), () => {
      this.#pingSentAt = undefined;
    });
  }

  #onRequest(request: ReceivedRequest, response: Responder): void {
    try {
      const owner = this.dialogs.get(request.stackDialogId ?? '');
      if (owner !== undefined) owner.onRequest(request, response);
      else answerUnsolicited(request, response);
    } catch (error) {
      this.#options.logger.error({ err: error, method: request.method }, 'sip request not handled');
      if (request.method !== 'ACK') response.send(500);
    }
  }

  #onDown(reason: string): void {
    if (this.#state === 'down') return;
    this.#state = 'down';
    clearTimeout(this.#openTimer);
    this.#stopPings?.();
    this.#socket.destroy();
    const owners = [...this.#owners];
    this.#owners.clear();
    this.dialogs.clear();
    for (const owner of owners) owner.onLinkLost(reason);
    this.#options.onDown(reason);
  }
}

export function engineName(server: { readonly host: string; readonly port: number }): string {
  return `${server.host.includes(':') ? `[${server.host}]` : server.host}:${server.port}`;
}

/**
 * Answers a request outside of this process's dialogs. We respond to OPTIONS with 200, as RFC 3261,
 * section 11.2, describes it, and reject everything else, because this process only places calls.
 */
function answerUnsolicited(request: ReceivedRequest, response: Responder): void {
  if (request.method === 'ACK') return;
  const missing = missingExtensions(request);
  if ((request.stackDialogId ?? '') !== '') response.send(481);
  else if (missing !== undefined) response.send(420, { headers: missing });
  else answerOutside(request.method, response);
}

function answerOutside(method: string, response: Responder): void {
  switch (method) {
    case 'OPTIONS':
      response.send(200, { headers: { ...capabilityHeaders, ...acceptedTypes } });
      break;
    case 'INVITE':
      response.send(480, { headers: allowHeader });
      break;
    // There's no subscription outside of the gateway's calls (RFC 6665, section 4.1.3).
    case 'NOTIFY':
      response.send(481);
      break;
    default:
      response.send(405, { headers: allowHeader });
  }
}

/**
 * Catches and logs a callback's exceptions. If an exception escaped into srf, srf would close the
 * whole connection and with it all calls.
 */
export function guarded<Arguments extends unknown[]>(
  logger: Logger,
  callback: (...values: Arguments) => void,
): (...values: Arguments) => void {
  return (...values) => {
    try {
      callback(...values);
    } catch (error) {
      logger.error({ err: error }, 'sip callback failed');
    }
  };
}

/**
 * Drops frames that would overflow the server's input ring. This is the last line of defence,
 * because it also covers the frames that srf builds on its own, e.g. responses that repeat the far
 * end's headers and digest retries with the far end's nonce.
 */
function guardFrames(socket: Socket, onDropped: (bytes: number) => void): void {
  const write = socket.write.bind(socket) as (...values: unknown[]) => boolean;
  socket.write = ((...values: unknown[]) => {
    const chunk = values[0];
    const bytes = typeof chunk === 'string' ? Buffer.byteLength(chunk) : 0;
    if (bytes <= maxFrameBytes) {
      corkUntilNextTick(socket);
      return write(...values);
    }
    onDropped(bytes);
    return true;
  }) as Socket['write'];
}

/** Sends all frames of a tick in one system call. */
function corkUntilNextTick(socket: Socket): void {
  if (socket.writableCorked > 0) return;
  socket.cork();
  process.nextTick(() => socket.uncork());
}

/**
 * Escapes the semicolons and question marks in the user part of a request URI, as in
 * `sip:7042;ext=1@host`. drachtio-server 0.9.10 reads the URI as if it were a header value without
 * brackets, ends it at the first of them (`normalizeSipUri`), and refuses the request. It unescapes
 * the user part, so they arrive on the wire.
 */
function escapeUser(uri: string): string {
  const at = uri.lastIndexOf('@');
  if (at < 0) return uri;
  const user = uri.slice(0, at).replaceAll(';', '%3B').replaceAll('?', '%3F');
  return `${user}${uri.slice(at)}`;
}
