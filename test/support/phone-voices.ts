// Gives phones their voices. All of them share one UDP socket and a clock that sends 20 ms of each
// voice at a time. They note the first sound from the other side.

import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { joined, silence, tone } from '../../src/embedded/sandbox/tones.ts';
import { readMulawWav, recordingUrl } from '../../src/embedded/sandbox/wav-file.ts';
import { encode, isSilentMulaw } from '../../src/media/g711.ts';
import { freeUdpPort } from './free-port.ts';

const rtpHeaderBytes = 12;
const frameBytes = 160;
const frameMs = 20;
const maxCaughtUpFrames = 10;
const mulawSilence = Buffer.alloc(frameBytes, 0xff);

const recording = (name: string): Int16Array => readMulawWav(recordingUrl(name));
const pickUp = silence(400);

/** All voices are short enough for calls that last a few seconds. */
const voices = {
  mailbox: () =>
    joined([
      ...[pickUp, recording('voicemail-greeting').subarray(0, 16_000), silence(400)],
      tone([1_000], 400, -9),
    ]),
  greets: () => joined([pickUp, recording('person-hello')]),
  // The screener asks a question, then the person takes the call.
  screener: () =>
    joined([
      ...[pickUp, recording('screener-question').subarray(0, 20_000), silence(3_500)],
      recording('person-hello'),
    ]),
} as const;
export type VoiceName = keyof typeof voices;
export const voiceNames = Object.keys(voices) as readonly VoiceName[];

/** What a phone says, and which 20 ms frames of it are the greeting. */
export type Voice = {
  readonly mulaw: Buffer;
  /** The first frame of the greeting and the frame after its last. Omitted without a greeting. */
  readonly greeting?: { readonly from: number; readonly until: number };
};

/** What the phone itself sent or heard, by `Date.now()`. */
export type VoiceLog = {
  greetingBeganAt?: number;
  greetingEndedAt?: number;
  /** When the first sound from the other side arrived. */
  heardAt?: number;
};

type Talking = {
  readonly port: number;
  readonly voice: Voice;
  at: number;
  readonly ssrc: number;
  readonly log: VoiceLog;
};

export class PhoneVoices implements AsyncDisposable {
  readonly #socket: Socket;
  readonly #talking = new Map<string, Talking>();
  readonly #encoded = new Map<VoiceName, Voice>();
  /** The logs of the listening phones, by the port from which the other side sends. */
  readonly #listening = new Map<number, VoiceLog>();
  #timer: NodeJS.Timeout | undefined;
  #tickAt = 0;
  #ssrc = 1;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('message', (packet, { port }) => this.#hear(packet, port));
    // The port may already be closed.
    socket.on('error', () => undefined);
  }

  static async start(): Promise<PhoneVoices> {
    const socket = createSocket({ type: 'udp4', recvBufferSize: 4 * 1_024 * 1_024 });
    socket.bind(await freeUdpPort(), '127.0.0.1');
    await once(socket, 'listening');
    return new PhoneVoices(socket);
  }

  /** The port from which all phones send and at which they receive. */
  get port(): number {
    return this.#socket.address().port;
  }

  /** Sends the voice to `port`, then silence until `hush`. Logs what it sends and hears. */
  talk(id: string, wanted: VoiceName | Voice, port: number, log: VoiceLog = {}): void {
    const voice = typeof wanted === 'string' ? this.#named(wanted) : wanted;
    this.#ssrc += 1;
    this.#talking.set(id, { port, voice, at: 0, ssrc: this.#ssrc, log });
    this.#listening.set(port, log);
    if (this.#timer !== undefined) return;
    this.#tickAt = performance.now();
    this.#timer = setInterval(() => this.#catchUp(), frameMs);
  }

  #named(name: VoiceName): Voice {
    const voice = this.#encoded.get(name) ?? {
      mulaw: Buffer.from(encode('PCMU', voices[name]())),
    };
    this.#encoded.set(name, voice);
    return voice;
  }

  #hear(packet: Buffer, port: number): void {
    const log = this.#listening.get(port);
    if (log === undefined || packet.length <= rtpHeaderBytes) return;
    if (isSilentMulaw(packet, rtpHeaderBytes, packet.length - rtpHeaderBytes)) return;
    log.heardAt = Date.now();
    this.#listening.delete(port);
  }

  hush(id: string): void {
    const talking = this.#talking.get(id);
    // The port may have another call already.
    if (talking !== undefined && this.#listening.get(talking.port) === talking.log) {
      this.#listening.delete(talking.port);
    }
    this.#talking.delete(id);
    if (this.#talking.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const id of [...this.#talking.keys()]) this.hush(id);
    this.#socket.close();
    await once(this.#socket, 'close');
  }

  /**
   * Sends all frames that are due. After a delay the clock catches up, but only by a limited number
   * of frames.
   */
  #catchUp(): void {
    const now = performance.now();
    for (let frames = 0; this.#tickAt <= now && frames < maxCaughtUpFrames; frames += 1) {
      this.#tickAt += frameMs;
      for (const talking of this.#talking.values()) this.#say(talking);
    }
    if (this.#tickAt <= now) this.#tickAt = now;
  }

  #say(talking: Talking): void {
    const { port, voice, at, ssrc, log } = talking;
    const packet = Buffer.alloc(rtpHeaderBytes + frameBytes);
    packet.writeUInt16BE(at === 0 ? 0x80_80 : 0x80_00, 0);
    packet.writeUInt16BE(at & 0xffff, 2);
    packet.writeUInt32BE(at * frameBytes, 4);
    packet.writeUInt32BE(ssrc, 8);
    mulawSilence.copy(packet, rtpHeaderBytes);
    voice.mulaw.subarray(at * frameBytes, (at + 1) * frameBytes).copy(packet, rtpHeaderBytes);
    talking.at += 1;
    if (at === voice.greeting?.from) log.greetingBeganAt = Date.now();
    // A greeting ends with its last frame, and is followed by silence.
    if (at === voice.greeting?.until) log.greetingEndedAt = Date.now();
    this.#socket.send(packet, port, '127.0.0.1');
  }
}
