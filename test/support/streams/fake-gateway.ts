// A gateway as a bot sees it: a WebSocket client with a playout queue, and a far end that says what
// a test wants. Its messages follow the same grammar as those of the real gateway.

import { createHmac, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { WebSocket } from 'ws';
import type { Talker } from '../../../src/embedded/sandbox/talker.ts';
import { type FromBot, readBotMessage } from './stream-messages.ts';

const frameMs = 20;
const frameBytes = 160;
const silentFrame = Buffer.alloc(frameBytes, 0xff);

export type FakeGatewayOptions = {
  readonly url: string;
  readonly streamSecret?: string;
  readonly customParameters?: Readonly<Record<string, string>>;
  /**
   * How many times faster than a real call the gateway runs. A bot whose only clock is the audio
   * does not notice. Default: 1.
   */
  readonly speed?: number;
  /** A person who talks without being scripted, in place of `speak`. */
  readonly farEnd?: Pick<Talker, 'hear' | 'nextFrame'>;
};

/** An item that waits to be played: audio, or a mark. */
type Queued = { readonly audio: Buffer } | { readonly mark: string };

export class FakeGateway {
  readonly accountSid = `AC${randomBytes(16).toString('hex')}`;
  readonly callSid = `CA${randomBytes(16).toString('hex')}`;
  readonly streamSid = `MZ${randomBytes(16).toString('hex')}`;
  /** The texts of all messages that were sent. */
  readonly sent: string[] = [];
  readonly received: FromBot[] = [];
  /** The messages that a gateway ignores. */
  readonly ignored: string[] = [];
  /**
   * The 20 ms frames that the far end has heard since the start. Silent if the bot said nothing.
   */
  readonly heard: Buffer[] = [];
  /** The marks that were returned. `atMs`: how much audio the far end had heard by then. */
  readonly marks: { readonly name: string; readonly atMs: number; readonly cleared: boolean }[] =
    [];
  closeCode: number | undefined;
  readonly #socket: WebSocket;
  readonly #options: FakeGatewayOptions;
  readonly #spoken: Buffer[] = [];
  #queue: Queued[] = [];
  #sequence = 0;
  #chunk = 0;
  #timer: NodeJS.Timeout | undefined;
  #startedAt = 0;

  private constructor(socket: WebSocket, options: FakeGatewayOptions) {
    this.#socket = socket;
    this.#options = options;
    socket.on('error', () => undefined);
    socket.on('message', (data: Buffer, isBinary) => this.#take(data.toString(), isBinary));
    socket.on('close', (code) => {
      this.closeCode = code;
      clearInterval(this.#timer);
    });
  }

  /** @throws Error with the status of a refused upgrade. */
  static async connect(options: FakeGatewayOptions): Promise<FakeGateway> {
    const socket = new WebSocket(options.url, {
      perMessageDeflate: false,
      headers: signatureHeaders(options),
    });
    const gateway = new FakeGateway(socket, options);
    await once(socket, 'open');
    gateway.#begin();
    return gateway;
  }

  get heardMs(): number {
    return this.heard.length * frameMs;
  }

  /** How much of the bot's audio is waiting to be played, in ms. */
  get queuedMs(): number {
    return (
      this.#queue.reduce((sum, item) => sum + ('audio' in item ? item.audio.length : 0), 0) / 8
    );
  }

  /** Queues audio for the far end to say. The far end is silent before and after it. */
  speak(mulaw: Uint8Array): void {
    for (let at = 0; at < mulaw.length; at += frameBytes) {
      const frame = Buffer.from(silentFrame);
      frame.set(mulaw.subarray(at, at + frameBytes));
      this.#spoken.push(frame);
    }
  }

  press(digit: string): void {
    this.#send({ event: 'dtmf', dtmf: { track: 'inbound_track', digit } });
  }

  detect(amd: { readonly event: string } & Readonly<Record<string, unknown>>): void {
    this.#send({ event: 'amd', amd });
  }

  /** Sends a message that no gateway sends. */
  sendNonsense(nonsense: string | Buffer): void {
    this.#socket.send(nonsense);
  }

  /** Ends the call: sends `stop` and closes the connection. */
  stop(): void {
    clearInterval(this.#timer);
    const { accountSid, callSid } = this;
    this.#send({ event: 'stop', stop: { accountSid, callSid } });
    this.#socket.close(1000);
  }

  /** Breaks the connection without a closing handshake. */
  break(): void {
    this.#socket.terminate();
  }

  #begin(): void {
    this.#sendRaw({ event: 'connected', protocol: 'Call', version: '1.0.0' });
    const { accountSid, streamSid, callSid } = this;
    this.#send({
      event: 'start',
      start: {
        accountSid,
        streamSid,
        callSid,
        tracks: ['inbound'],
        mediaFormat: { encoding: 'audio/x-mulaw', sampleRate: 8_000, channels: 1 },
        customParameters: { callId: 'call-1', ...this.#options.customParameters },
      },
    });
    this.#startedAt = performance.now();
    this.#timer = setInterval(() => this.#catchUp(), 2);
  }

  #catchUp(): void {
    const speed = this.#options.speed ?? 1;
    const elapsedMs = () => (performance.now() - this.#startedAt) * speed;
    // The clock catches up after a short pause of the test's process. It ignores a long pause, so
    // that the bot's answers are read first.
    for (let steps = 0; steps < 5 && this.heardMs + frameMs <= elapsedMs(); steps += 1) {
      this.#tick();
    }
    const behindMs = elapsedMs() - this.heardMs;
    if (behindMs > 5 * frameMs) this.#startedAt += (behindMs - frameMs) / speed;
  }

  #tick(): void {
    this.#chunk += 1;
    this.#send({
      event: 'media',
      media: {
        track: 'inbound',
        chunk: String(this.#chunk),
        timestamp: String((this.#chunk - 1) * frameMs),
        payload: Buffer.from(this.#nextSpoken()).toString('base64'),
      },
    });
    const played = this.#play();
    this.heard.push(played);
    this.#options.farEnd?.hear(played, 'PCMU');
    this.#returnMarks(false);
  }

  #nextSpoken(): Uint8Array {
    return this.#options.farEnd?.nextFrame('PCMU') ?? this.#spoken.shift() ?? silentFrame;
  }

  /**
   * Takes the next frame from the queue. A mark within the frame returns at the end of the frame.
   */
  #play(): Buffer {
    const frame = Buffer.from(silentFrame);
    const passed: Queued[] = [];
    let filled = 0;
    while (filled < frameBytes && this.#queue.length > 0) {
      const item = this.#queue.shift() as Queued;
      if ('mark' in item) {
        passed.push(item);
        continue;
      }
      const part = item.audio.subarray(0, frameBytes - filled);
      frame.set(part, filled);
      filled += part.length;
      if (part.length < item.audio.length) {
        this.#queue.unshift({ audio: item.audio.subarray(part.length) });
      }
    }
    this.#queue.unshift(...passed);
    return frame;
  }

  /** Returns the marks at the head of the queue to the bot. */
  #returnMarks(cleared: boolean): void {
    for (
      let first = this.#queue[0];
      first !== undefined && 'mark' in first;
      first = this.#queue[0]
    ) {
      this.#queue.shift();
      this.marks.push({ name: first.mark, atMs: this.heardMs, cleared });
      this.#send({ event: 'mark', mark: { name: first.mark } });
    }
  }

  #take(text: string, isBinary: boolean): void {
    const message = isBinary ? undefined : readBotMessage(text);
    if (message === undefined || message.streamSid !== this.streamSid) {
      this.ignored.push(text);
      return;
    }
    this.received.push(message);
    if (message.event === 'media') {
      this.#queue.push({ audio: Buffer.from(message.media.payload, 'base64') });
    } else if (message.event === 'mark') {
      this.#queue.push({ mark: message.mark.name });
      this.#returnMarks(false);
    } else {
      this.#queue = this.#queue.filter((item) => 'mark' in item);
      this.#returnMarks(true);
    }
  }

  #send(message: { readonly event: string } & Readonly<Record<string, unknown>>): void {
    this.#sequence += 1;
    const { streamSid } = this;
    this.#sendRaw({ ...message, sequenceNumber: String(this.#sequence), streamSid });
  }

  #sendRaw(message: object): void {
    const text = JSON.stringify(message);
    this.sent.push(text);
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(text);
  }
}

/** Returns the headers with both signatures of the upgrade. */
function signatureHeaders({ url, streamSecret }: FakeGatewayOptions): Record<string, string> {
  if (streamSecret === undefined) return {};
  const { pathname, search } = new URL(url);
  const timestampS = Math.floor(Date.now() / 1_000);
  const hmac = createHmac('sha256', streamSecret).update(`${timestampS}.${pathname}${search}`);
  return {
    'Gateway-Signature': `t=${timestampS},v1=${hmac.digest('hex')}`,
    'X-Twilio-Signature': createHmac('sha1', streamSecret).update(url).digest('base64'),
  };
}
