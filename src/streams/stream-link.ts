// One WebSocket connection to a bot, from the upgrade to the close. The link limits the text that
// it sends and receives, but doesn't interpret it.

import { createHmac } from 'node:crypto';
import type { Socket } from 'node:net';
import { type ClientOptions, WebSocket } from 'ws';
import type { StreamFault } from '../calls/stream/stream-reasons.ts';
import { AddressNotAllowedError } from '../lib/address-guard.ts';

/**
 * 8 MiB are about 13 minutes of audio in base64. If a message is longer, the connection is closed
 * with 1009, and the stream reconnects.
 */
const maxMessageBytes = 8 * 1_024 * 1_024;
/**
 * Limits the text, mostly marks and keys, that's waiting for the bot to read it. A bot that has
 * fallen further behind than this is considered dead.
 */
const maxBacklogBytes = 1_024 * 1_024;
/**
 * We stop sending audio while the socket's buffer contains more than this, because audio that's
 * already in the buffer can't be dropped.
 */
const fullBytes = 4_096;
/** The bot has this long to complete our closing handshake before we cut the connection. */
const closeTimeoutMs = 2_000;

/** The reason why a connection ended or failed. */
export type LinkEnd = {
  /** A code, e.g. `closed-1006`. Never contains an address, or text from the bot. */
  readonly reason: string;
  /**
   * - closed: the bot closed the connection normally.
   * - refused: a retry would have the same result.
   * - lost: any other end.
   */
  readonly kind: 'closed' | 'refused' | 'lost';
};

export type LinkSink = {
  onOpen(): void;
  onText(text: string): void;
  onBinary(): void;
  onPong(): void;
  /** Called once, after all other callbacks. */
  onEnd(end: LinkEnd): void;
  /** Called if one of the other handlers has thrown. */
  onDefect(error: unknown): void;
};

export type LinkOptions = {
  readonly url: string;
  /** Secret for signing the upgrade request. */
  readonly secret: string;
  readonly timestampS: number;
  /** A socket that's connected or still connecting. */
  readonly transport: Socket;
};

/** A bot that leaves closes the connection normally (1000) or without a code (1005). */
const closedByBot: ReadonlySet<number> = new Set([1000, 1005]);
/**
 * Client errors that may be temporary. Any other 4xx means that something is wrong with the request
 * itself.
 */
const transientStatuses: ReadonlySet<number> = new Set([408, 425, 429]);

export class StreamLink {
  readonly #socket: WebSocket;
  readonly #sink: LinkSink;
  #hasEnded = false;
  #failure: LinkEnd | undefined;

  constructor({ url, secret, timestampS, transport }: LinkOptions, sink: LinkSink) {
    this.#sink = sink;
    // The types for `ws` don't include `closeTimeout`.
    const options: ClientOptions & { readonly closeTimeout: number } = {
      headers: signatureHeaders(url, secret, timestampS),
      createConnection: () => transport,
      perMessageDeflate: false,
      followRedirects: false,
      maxPayload: maxMessageBytes,
      closeTimeout: closeTimeoutMs,
    };
    this.#socket = new WebSocket(url, options);
    this.#socket.on('open', () => this.#runSafely(() => sink.onOpen()));
    this.#socket.on('message', (data, isBinary) =>
      this.#runSafely(() => {
        if (isBinary) sink.onBinary();
        // The data is one buffer unless `binaryType` is changed.
        else sink.onText((data as Buffer).toString('utf8'));
      }),
    );
    this.#socket.on('pong', () => this.#runSafely(() => sink.onPong()));
    this.#socket.on('unexpected-response', (request, response) => {
      this.#failure = endForStatus(response.statusCode ?? 0);
      request.destroy();
      this.#end(this.#failure);
    });
    this.#socket.on('error', (error) => {
      this.#failure ??= endForError(error);
    });
    this.#socket.on('close', (code) => this.#end(this.#failure ?? endForCloseCode(code)));
  }

  /** True if the bot is reading so slowly that we can't send audio now. */
  get isFull(): boolean {
    return this.#socket.bufferedAmount > fullBytes;
  }

  send(text: string): void {
    if (this.#hasEnded) return;
    this.#socket.send(text);
    if (this.#socket.bufferedAmount > maxBacklogBytes) this.abandon('backlog');
  }

  /** Sends a ping. If the bot is alive, it responds with a pong. */
  ping(): void {
    if (!this.#hasEnded) this.#socket.ping();
  }

  /** Closes the connection from our side. `onEnd` isn't called. */
  close(): void {
    this.#hasEnded = true;
    // A closing handshake isn't possible during the upgrade.
    if (this.#socket.readyState === WebSocket.CONNECTING) this.#socket.terminate();
    else this.#socket.close(1000);
  }

  /** Cuts a dead connection. It's reported as `lost` with this reason. */
  abandon(reason: StreamFault): void {
    this.#end({ kind: 'lost', reason });
  }

  #end(end: LinkEnd): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    if (this.#socket.readyState !== WebSocket.CLOSED) this.#socket.terminate();
    try {
      this.#sink.onEnd(end);
    } catch (error) {
      this.#sink.onDefect(error);
    }
  }

  /** Runs a callback and catches its errors, which would otherwise end the thread. */
  #runSafely(run: () => void): void {
    if (this.#hasEnded) return;
    try {
      run();
    } catch (error) {
      this.#sink.onDefect(error);
    }
  }
}

/** Returns our own signature, and in addition the one that bot libraries already check. */
function signatureHeaders(url: string, secret: string, timestampS: number): Record<string, string> {
  const { pathname, search } = new URL(url);
  const own = createHmac('sha256', secret)
    .update(`${timestampS}.${pathname}${search}`)
    .digest('hex');
  return {
    'Gateway-Signature': `t=${timestampS},v1=${own}`,
    // Sign the URL exactly as configured, because the bot compares this signature with the one for
    // its own configured URL.
    'X-Twilio-Signature': createHmac('sha1', secret).update(url).digest('base64'),
  };
}

function endForCloseCode(code: number): LinkEnd {
  return { kind: closedByBot.has(code) ? 'closed' : 'lost', reason: `closed-${code}` };
}

function endForStatus(status: number): LinkEnd {
  const isFinal = status < 500 && !transientStatuses.has(status);
  return { kind: isFinal ? 'refused' : 'lost', reason: `status-${status}` };
}

/** Uses the error's code as the reason, because its message contains addresses. */
function endForError(error: Error & { code?: string }): LinkEnd {
  if (error instanceof AddressNotAllowedError) {
    return { kind: 'refused', reason: 'address-not-allowed' satisfies StreamFault };
  }
  return { kind: 'lost', reason: error.code ?? ('failed' satisfies StreamFault) };
}
