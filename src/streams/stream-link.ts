// One WebSocket connection to a bot, from the upgrade to the close. Text out and in, within bounds; what a message means is
// for others to do.

import { createHmac } from 'node:crypto';
import type { Socket } from 'node:net';
import { type ClientOptions, WebSocket } from 'ws';
import { AddressNotAllowedError } from '../lib/address-guard.ts';

/** Thirteen minutes of audio in base64. A bot that sends more in one message is closed with 1009, and connected again. */
const longestMessageBytes = 8 * 1_024 * 1_024;
/** Marks and keys for a bot that has not read for long: it is not there. */
const longestBacklogBytes = 1_024 * 1_024;
/** Audio waits here rather than in the socket's buffer, where nothing can be taken back. */
const fullBytes = 4_096;
/** A bot that does not answer the closing handshake is left. */
const closeTimeoutMs = 2_000;

/** Why a connection is over, or was never made. A word, never an address or what the bot wrote. */
export type LinkEnd = {
  readonly reason: string;
  /** closed: the bot ended it in good order. refused: another try would come to the same. lost: all else. */
  readonly kind: 'closed' | 'refused' | 'lost';
};

export type LinkSink = {
  onOpen(): void;
  onText(text: string): void;
  onBinary(): void;
  /** Once, and nothing after it. */
  onEnd(end: LinkEnd): void;
  /** One of the above threw. */
  onDefect(error: unknown): void;
};

export type LinkOptions = {
  readonly url: string;
  /** Signs the upgrade request, with the time beside it. */
  readonly secret: string;
  readonly timestampS: number;
  /** Made in advance, or under way. */
  readonly transport: Socket;
};

/** The bot's own orderly ends: with a code that says so, and without any. */
const closedByBot: ReadonlySet<number> = new Set([1000, 1005]);
/** Not now, of HTTP's client errors: all others mean that the request is wrong. */
const passingStatuses: ReadonlySet<number> = new Set([408, 425, 429]);

export class StreamLink {
  readonly #socket: WebSocket;
  readonly #sink: LinkSink;
  #isOver = false;
  #failure: LinkEnd | undefined;

  constructor({ url, secret, timestampS, transport }: LinkOptions, sink: LinkSink) {
    this.#sink = sink;
    // Its types do not know `closeTimeout` yet.
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
        // One buffer, as long as `binaryType` is left alone.
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

  /** Audio that is given now would wait. */
  get isFull(): boolean {
    return this.#socket.bufferedAmount > fullBytes;
  }

  send(text: string): void {
    if (this.#isOver) return;
    this.#socket.send(text);
    if (this.#socket.bufferedAmount > longestBacklogBytes) this.abandon('backlog');
  }

  /** Whether anything comes back says that a bot is there. */
  ping(onPong: () => void): void {
    if (this.#isOver) return;
    this.#socket.once('pong', onPong);
    this.#socket.ping();
  }

  /** We end it; `onEnd` is not called any more. */
  close(): void {
    this.#isOver = true;
    // While the upgrade is under way there is nothing to say good-bye to.
    if (this.#socket.readyState === WebSocket.CONNECTING) this.#socket.terminate();
    else this.#socket.close(1000);
  }

  /** It is of no use any more. */
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

  /** What a listener of a socket throws would end the thread. */
  #safely(run: () => void): void {
    if (this.#isOver) return;
    try {
      run();
    } catch (error) {
      this.#sink.onDefect(error);
    }
  }
}

/** Our own signature, and the one that bots' libraries check already. */
function signatureHeaders(url: string, secret: string, timestampS: number): Record<string, string> {
  const { pathname, search } = new URL(url);
  const own = createHmac('sha256', secret)
    .update(`${timestampS}.${pathname}${search}`)
    .digest('hex');
  return {
    'Gateway-Signature': `t=${timestampS},v1=${own}`,
    // Over the URL to the letter as it was configured: what a bot compares with is what its owner wrote.
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

/** A code, not a message: messages carry addresses. */
function failureOf(error: Error & { code?: string }): LinkEnd {
  if (error instanceof AddressNotAllowedError) {
    return { kind: 'refused', reason: 'address-not-allowed' };
  }
  return { kind: 'lost', reason: error.code ?? 'failed' };
}
