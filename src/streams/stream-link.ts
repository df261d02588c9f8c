// One WebSocket connection to a bot, from the upgrade to the close. It sends and receives text
// within bounds and does not interpret the messages.

import { createHmac } from 'node:crypto';
import type { Socket } from 'node:net';
import { type ClientOptions, WebSocket } from 'ws';
import { AddressNotAllowedError } from '../lib/address-guard.ts';

/**
 * Thirteen minutes of audio in base64. A bot that sends more in one message is closed with 1009,
 * and reconnected.
 */
const longestMessageBytes = 8 * 1_024 * 1_024;
/** Marks and keys that wait for a bot, at most. A bot that has not read for so long is gone. */
const longestBacklogBytes = 1_024 * 1_024;
/**
 * Fill level of the socket's buffer above which no audio is sent: audio in that buffer can no
 * longer be dropped.
 */
const fullBytes = 4_096;
/** After this time without an answer to the closing handshake, the connection is cut. */
const closeTimeoutMs = 2_000;

/** Why a connection ended, or was never made. */
export type LinkEnd = {
  /** A word, never an address or text of the bot. */
  readonly reason: string;
  /**
   * - closed: the bot ended the connection in an orderly way.
   * - refused: another try would have the same result.
   * - lost: any other end.
   */
  readonly kind: 'closed' | 'refused' | 'lost';
};

export type LinkSink = {
  onOpen(): void;
  onText(text: string): void;
  onBinary(): void;
  /** Called once, as the last notification. */
  onEnd(end: LinkEnd): void;
  /** One of the handlers above threw. */
  onDefect(error: unknown): void;
};

export type LinkOptions = {
  readonly url: string;
  /** Secret that signs the upgrade request together with `timestampS`. */
  readonly secret: string;
  readonly timestampS: number;
  /** A socket that is connected or still connecting. */
  readonly transport: Socket;
};

/** Close codes of an orderly end by the bot: normal closure, and no code. */
const closedByBot: ReadonlySet<number> = new Set([1000, 1005]);
/** HTTP client errors that may pass. All others mean that the request is wrong. */
const passingStatuses: ReadonlySet<number> = new Set([408, 425, 429]);

export class StreamLink {
  readonly #socket: WebSocket;
  readonly #sink: LinkSink;
  #isOver = false;
  #failure: LinkEnd | undefined;

  constructor({ url, secret, timestampS, transport }: LinkOptions, sink: LinkSink) {
    this.#sink = sink;
    // The types of `ws` do not have `closeTimeout` yet.
    const options: ClientOptions & { readonly closeTimeout: number } = {
      headers: signatureHeaders(url, secret, timestampS),
      createConnection: () => transport,
      perMessageDeflate: false,
      followRedirects: false,
      maxPayload: longestMessageBytes,
      closeTimeout: closeTimeoutMs,
    };
    this.#socket = new WebSocket(url, options);
    this.#socket.on('open', () => this.#safely(() => sink.onOpen()));
    this.#socket.on('message', (data, isBinary) =>
      this.#safely(() => {
        if (isBinary) sink.onBinary();
        // The data is one buffer unless `binaryType` is changed.
        else sink.onText((data as Buffer).toString('utf8'));
      }),
    );
    this.#socket.on('unexpected-response', (request, response) => {
      this.#failure = refusalOf(response.statusCode ?? 0);
      request.destroy();
      this.#end(this.#failure);
    });
    this.#socket.on('error', (error) => {
      this.#failure ??= failureOf(error);
    });
    this.#socket.on('close', (code) => this.#end(this.#failure ?? endOfCode(code)));
  }

  /** Whether audio sent now would wait in the socket's buffer. */
  get isFull(): boolean {
    return this.#socket.bufferedAmount > fullBytes;
  }

  send(text: string): void {
    if (this.#isOver) return;
    this.#socket.send(text);
    if (this.#socket.bufferedAmount > longestBacklogBytes) this.abandon('backlog');
  }

  /** Sends a ping. A pong shows that the bot is alive. */
  ping(onPong: () => void): void {
    if (this.#isOver) return;
    this.#socket.once('pong', onPong);
    this.#socket.ping();
  }

  /** Closes the connection from our side. `onEnd` is not called any more. */
  close(): void {
    this.#isOver = true;
    // During the upgrade no closing handshake is possible.
    if (this.#socket.readyState === WebSocket.CONNECTING) this.#socket.terminate();
    else this.#socket.close(1000);
  }

  /** Drops a connection that is of no use any more. */
  abandon(reason: string): void {
    this.#end({ kind: 'lost', reason });
  }

  #end(end: LinkEnd): void {
    if (this.#isOver) return;
    this.#isOver = true;
    if (this.#socket.readyState !== WebSocket.CLOSED) this.#socket.terminate();
    try {
      this.#sink.onEnd(end);
    } catch (error) {
      this.#sink.onDefect(error);
    }
  }

  /** Runs a listener. An error that it throws would otherwise end the thread. */
  #safely(run: () => void): void {
    if (this.#isOver) return;
    try {
      run();
    } catch (error) {
      this.#sink.onDefect(error);
    }
  }
}

/** Returns our own signature and the one that bots' libraries already check. */
function signatureHeaders(url: string, secret: string, timestampS: number): Record<string, string> {
  const { pathname, search } = new URL(url);
  const own = createHmac('sha256', secret)
    .update(`${timestampS}.${pathname}${search}`)
    .digest('hex');
  return {
    'Gateway-Signature': `t=${timestampS},v1=${own}`,
    // Signs the URL exactly as configured, because a bot compares it with what its owner
    // configured.
    'X-Twilio-Signature': createHmac('sha1', secret).update(url).digest('base64'),
  };
}

function endOfCode(code: number): LinkEnd {
  return { kind: closedByBot.has(code) ? 'closed' : 'lost', reason: `closed-${code}` };
}

function refusalOf(status: number): LinkEnd {
  const isFinal = status < 500 && !passingStatuses.has(status);
  return { kind: isFinal ? 'refused' : 'lost', reason: `status-${status}` };
}

/** The reason is a code and not a message, because messages contain addresses. */
function failureOf(error: Error & { code?: string }): LinkEnd {
  if (error instanceof AddressNotAllowedError) {
    return { kind: 'refused', reason: 'address-not-allowed' };
  }
  return { kind: 'lost', reason: error.code ?? 'failed' };
}
