// One call's connection to a speech-to-text provider, over which we send audio and receive results.
// A provider may be slow, silent, broken or hostile, so we limit everything that it can make us do.
// After a failure we call `onFailed` once and then never report anything again.

import { endianness } from 'node:os';
import { type RawData, WebSocket } from 'ws';
import { chunkMs, type Message, type Protocol, type Said } from './protocol.ts';

/**
 * We buffer audio until the connection is open, but give up after this time, because by then the
 * recogniser would have missed the greeting anyway.
 */
const connectTimeoutMs = 3_000;
/** Even results with word times are only a few KiB long. */
const maxMessageBytes = 64 * 1_024;
/**
 * Four seconds of audio. A provider that's this far behind isn't keeping up with the call any more.
 */
const maxBacklogChunks = 40;
/** Streaming recognisers usually send a few results per second. */
const maxMessagesPerSecond = 50;
const messagesInStore = 100;
/**
 * Even the fastest speakers don't say more than six words per second, so a provider that reports
 * more than eight must be making some of them up.
 */
const maxWordsPerSecond = 8;
const wordsInStore = 10;
/**
 * During detection, audio arrives every 20 ms. If no audio arrives for this long, the call must
 * have ended.
 */
const idleTimeoutMs = 5_000;
/** If the provider doesn't answer the closing handshake within this time, we cut the connection. */
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
  /** `sentMs` is the length of the audio that we had sent to the provider by then. */
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
  /** Audio that we buffered before the connection opened. */
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
   * Sends the next 20 ms, even if nothing arrived, so that the provider's clock stays in sync with
   * the call.
   */
  push(frame: Int16Array): void {
    if (this.#socket === undefined) return;
    this.#chunk.set(frame.subarray(0, frameSamples), this.#chunkLength);
    this.#chunkLength += frameSamples;
    if (this.#chunkLength < chunkSamples) return;
    this.#idleTimer.refresh();
    const { encode = littleEndian } = this.#protocol;
    this.#send(this.#socket, encode(this.#chunk));
    this.#chunk = new Int16Array(chunkSamples);
    this.#chunkLength = 0;
  }

  /** Ends the stream. After this we don't send any more audio or report any more results. */
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
        // Compression isn't worth the memory. It would also allow the provider to turn a small
        // message into a huge one.
        perMessageDeflate: false,
        followRedirects: false,
      });
    } catch {
      // The API key contains a character that isn't allowed in a header. We report that
      // asynchronously, like every other failure.
      setImmediate(() => this.#sink.onFailed('connect-failed'));
      return;
    }
    this.#socket = socket;
    // We need our own timer, because ws restarts its handshake time-out whenever a byte trickles
    // in.
    this.#connectTimer = setTimeout(() => this.#fail('connect-timeout'), connectTimeoutMs);
    this.#listen(socket);
  }

  /**
   * We don't remove these listeners when we release the socket, because an `error` event without a
   * listener would kill the thread.
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
    // ws has rejected a message, because it exceeded the limits or violated RFC 6455.
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
    // The connect time-out limits the number of chunks that can pile up here.
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

  /** Counts a received message. Returns false if the provider has now sent too many. */
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
