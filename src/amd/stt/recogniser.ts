// One call's connection to a speech-to-text provider: audio goes out, results come in. Providers
// may be slow, silent, broken or hostile, so everything is bounded. Every failure ends in a single
// `onFailed`, after which the recogniser stays silent.

import { endianness } from 'node:os';
import { type RawData, WebSocket } from 'ws';
import { chunkMs, type Message, type Protocol, type Said } from './protocol.ts';

/**
 * We buffer audio until the connection is open. After this long, the recogniser would have missed
 * the greeting anyway.
 */
const connectTimeoutMs = 3_000;
/** Even a result with word times is only a few KiB. */
const maxMessageBytes = 64 * 1_024;
/**
 * Four seconds of audio. A provider that is this far behind isn't listening to the call any more.
 */
const maxBacklogChunks = 40;
/** Streaming recognisers usually send a few results per second. */
const maxMessagesPerSecond = 50;
const messagesInStore = 100;
/**
 * Even the fastest speakers don't say more than six words a second. A provider that reports more
 * than eight is making them up.
 */
const maxWordsPerSecond = 8;
const wordsInStore = 10;
/**
 * While detection runs, audio arrives every 20 ms. If it stops for this long, the call must have
 * ended.
 */
const idleTimeoutMs = 5_000;
/** How long the provider may take to answer the closing handshake before we cut the connection. */
const closeTimeoutMs = 1_000;

const frameMs = 20;
const frameSamples = 160;
const chunkSamples = (chunkMs / frameMs) * frameSamples;
const isBigEndian = endianness() === 'BE';

export type FailureReason =
  | 'connect-failed'
  | 'connect-timeout'
  /** The number is the handshake's HTTP status. */
  | `refused-${number}`
  | 'connection-lost'
  | 'backlog'
  | 'provider-error'
  | 'not-understood'
  | 'too-many-messages'
  | 'implausible';

export type RecogniserSink = {
  /** `sentMs` is how much audio the provider had received by then. */
  onSaid(said: Said, sentMs: number): void;
  /** Called at most once. */
  onFailed(reason: FailureReason): void;
};

export class Recogniser {
  readonly #protocol: Protocol;
  readonly #countWords: (text: string) => number;
  readonly #sink: RecogniserSink;
  #socket: WebSocket | undefined;
  #connectTimer: NodeJS.Timeout | undefined;
  readonly #idleTimer: NodeJS.Timeout;
  #chunk = new Int16Array(chunkSamples);
  #chunkLength = 0;
  /** Audio from before the connection opened. */
  #waiting: Buffer[] = [];
  #sentMs = 0;
  #messages = 0;
  #settledWords = 0;

  constructor(protocol: Protocol, countWords: (text: string) => number, sink: RecogniserSink) {
    this.#protocol = protocol;
    this.#countWords = countWords;
    this.#sink = sink;
    this.#idleTimer = setTimeout(() => this.close(), idleTimeoutMs).unref();
    this.#connect();
  }

  /**
   * Sends the next 20 ms. A lost frame is sent as silence, which keeps the provider's clock in step
   * with the call.
   */
  push(frame: Int16Array, lost: boolean): void {
    if (this.#socket === undefined) return;
    // A new chunk is already silent.
    if (!lost) this.#chunk.set(frame.subarray(0, frameSamples), this.#chunkLength);
    this.#chunkLength += frameSamples;
    if (this.#chunkLength < chunkSamples) return;
    this.#idleTimer.refresh();
    const { encode = littleEndian } = this.#protocol;
    this.#send(this.#socket, encode(this.#chunk));
    this.#chunk = new Int16Array(chunkSamples);
    this.#chunkLength = 0;
  }

  /** Ends the stream. No more audio is sent, and no more results are reported. */
  close(): void {
    const socket = this.#release();
    if (socket === undefined) return;
    if (socket.readyState !== WebSocket.OPEN) {
      socket.terminate();
      return;
    }
    socket.send(this.#protocol.closing);
    socket.close(1_000);
    setTimeout(() => socket.terminate(), closeTimeoutMs).unref();
  }

  #connect(): void {
    let socket: WebSocket;
    try {
      socket = new WebSocket(this.#protocol.url, {
        headers: this.#protocol.headers,
        handshakeTimeout: connectTimeoutMs,
        maxPayload: maxMessageBytes,
        maxFragments: 64,
        maxBufferedChunks: 1_024,
        // Compression isn't worth its memory, and it would let the provider inflate a small message
        // into a huge one.
        perMessageDeflate: false,
        followRedirects: false,
      });
    } catch {
      // The API key contains a character that isn't allowed in a header. Report that
      // asynchronously, like every other failure.
      setImmediate(() => this.#sink.onFailed('connect-failed'));
      return;
    }
    this.#socket = socket;
    // We need our own timer, because ws restarts its handshake time-out with every byte that
    // trickles in.
    this.#connectTimer = setTimeout(() => this.#fail('connect-timeout'), connectTimeoutMs);
    this.#listen(socket);
  }

  /**
   * These listeners stay on after the socket is released, because an `error` without a listener
   * would kill the thread.
   */
  #listen(socket: WebSocket): void {
    socket.on('open', () => this.#begin());
    socket.on('message', (data, isBinary) => this.#receive(data, isBinary));
    socket.on('ping', () => this.#count());
    socket.on('pong', () => this.#count());
    socket.on('unexpected-response', (request, response) => {
      request.destroy();
      this.#fail(`refused-${response.statusCode ?? 0}`);
    });
    socket.on('error', (error) => this.#fail(this.#failureReason(error)));
    socket.on('close', () => this.#fail(this.#failureReason()));
  }

  #failureReason(error?: Error & { readonly code?: unknown }): FailureReason {
    // ws rejected a message that exceeds the limits or violates RFC 6455.
    if (String(error?.code).startsWith('WS_ERR_')) return 'not-understood';
    return this.#connectTimer === undefined ? 'connection-lost' : 'connect-failed';
  }

  #begin(): void {
    const socket = this.#socket;
    if (socket === undefined) return;
    clearTimeout(this.#connectTimer);
    this.#connectTimer = undefined;
    const { opening } = this.#protocol;
    if (opening !== undefined) socket.send(opening);
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const chunk of waiting) this.#send(socket, chunk);
  }

  #send(socket: WebSocket, chunk: Buffer): void {
    // The connect time-out bounds how many chunks can pile up here.
    if (socket.readyState === WebSocket.CONNECTING) {
      this.#waiting.push(chunk);
      return;
    }
    if (socket.readyState !== WebSocket.OPEN) return;
    if (socket.bufferedAmount > maxBacklogChunks * chunk.length) {
      this.#fail('backlog');
      return;
    }
    socket.send(chunk);
    this.#sentMs += chunkMs;
  }

  #receive(data: RawData, isBinary: boolean): void {
    if (!this.#count()) return;
    if (isBinary || !Buffer.isBuffer(data)) {
      this.#fail('not-understood');
      return;
    }
    this.#take(this.#protocol.read(data.toString('utf8')));
  }

  #take(message: Message): void {
    switch (message.kind) {
      case 'other':
        return;
      case 'rubbish':
        this.#fail('not-understood');
        return;
      case 'error':
        this.#fail('provider-error');
        return;
      case 'said':
        if (this.#isPlausible(message)) this.#sink.onSaid(message, this.#sentMs);
        else this.#fail('implausible');
    }
  }

  #isPlausible({ transcript, isFinal }: Said): boolean {
    const words = this.#settledWords + this.#countWords(transcript);
    if (isFinal) this.#settledWords = words;
    return words <= wordsInStore + (this.#sentMs / 1_000) * maxWordsPerSecond;
  }

  /** Counts a received message. Returns false if the provider has sent too many. */
  #count(): boolean {
    if (this.#socket === undefined) return false;
    this.#messages += 1;
    if (this.#messages <= messagesInStore + (this.#sentMs / 1_000) * maxMessagesPerSecond) {
      return true;
    }
    this.#fail('too-many-messages');
    return false;
  }

  #fail(reason: FailureReason): void {
    const socket = this.#release();
    if (socket === undefined) return;
    socket.terminate();
    this.#sink.onFailed(reason);
  }

  #release(): WebSocket | undefined {
    const socket = this.#socket;
    this.#socket = undefined;
    clearTimeout(this.#connectTimer);
    clearTimeout(this.#idleTimer);
    this.#waiting = [];
    return socket;
  }
}

function littleEndian(samples: Int16Array): Buffer {
  const bytes = Buffer.from(samples.buffer, samples.byteOffset, samples.byteLength);
  return isBigEndian ? bytes.swap16() : bytes;
}
