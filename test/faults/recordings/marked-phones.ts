// Phones whose audio carries marks, and that note what they hear. All of them share one UDP socket.

import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { crc32 } from 'node:zlib';
import type { FarVoices } from '../../support/far-end.ts';
import { freeUdpPort } from '../../support/free-port.ts';
import { frameBytes, type Mark, markedFrame, readMark } from './marks.ts';

const rtpHeaderBytes = 12;
const frameMs = 20;
const maxCaughtUpFrames = 10;

/** What a phone sent and heard. */
export type PhoneLog = {
  readonly speaker: number;
  /** Frames that the phone has sent. */
  sent: number;
  /** The RTP timestamp and the CRC-32 of each frame that the phone received, in order. */
  readonly heard: { readonly timestamps: number[]; readonly sums: number[] };
  /** The first mark that the phone received, and its place among what it received. */
  firstMark?: Mark & { readonly at: number };
};

export class MarkedPhones implements FarVoices, AsyncDisposable {
  /** By Call-ID. */
  readonly logs = new Map<string, PhoneLog>();
  readonly #socket: Socket;
  readonly #talking = new Map<string, { readonly port: number; readonly log: PhoneLog }>();
  readonly #listening = new Map<number, PhoneLog>();
  readonly #timer: NodeJS.Timeout;
  #tickAt = performance.now();

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('message', (packet, { port }) => this.#hear(packet, port));
    // The port may already be closed.
    socket.on('error', () => undefined);
    this.#timer = setInterval(() => this.#catchUp(), frameMs);
  }

  static async start(): Promise<MarkedPhones> {
    const socket = createSocket({ type: 'udp4', recvBufferSize: 4 * 1_024 * 1_024 });
    socket.bind(await freeUdpPort(), '127.0.0.1');
    await once(socket, 'listening');
    return new MarkedPhones(socket);
  }

  get port(): number {
    return this.#socket.address().port;
  }

  talk(id: string, _voice: unknown, port: number): void {
    const log = { speaker: this.logs.size, sent: 0, heard: { timestamps: [], sums: [] } };
    this.logs.set(id, log);
    this.#talking.set(id, { port, log });
    this.#listening.set(port, log);
  }

  hush(id: string): void {
    const talking = this.#talking.get(id);
    this.#talking.delete(id);
    // The port may have another call already.
    if (talking !== undefined && this.#listening.get(talking.port) === talking.log)
      this.#listening.delete(talking.port);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    this.#socket.close();
    await once(this.#socket, 'close');
  }

  #hear(packet: Buffer, port: number): void {
    const log = this.#listening.get(port);
    if (log === undefined || packet.length !== rtpHeaderBytes + frameBytes) return;
    const audio = packet.subarray(rtpHeaderBytes);
    const { timestamps, sums } = log.heard;
    if (log.firstMark === undefined) {
      const mark = readMark(audio);
      if (mark !== undefined) log.firstMark = { ...mark, at: timestamps.length };
    }
    timestamps.push(packet.readUInt32BE(4));
    sums.push(crc32(audio));
  }

  /** Sends all frames that are due. After a delay, it catches up with some of them. */
  #catchUp(): void {
    const now = performance.now();
    for (let frames = 0; this.#tickAt <= now && frames < maxCaughtUpFrames; frames += 1) {
      this.#tickAt += frameMs;
      for (const { port, log } of this.#talking.values()) this.#say(port, log);
    }
    if (this.#tickAt <= now) this.#tickAt = now;
  }

  #say(port: number, log: PhoneLog): void {
    const packet = Buffer.alloc(rtpHeaderBytes + frameBytes);
    const { sent: frame, speaker } = log;
    packet.writeUInt16BE(frame === 0 ? 0x80_80 : 0x80_00, 0);
    packet.writeUInt16BE(frame & 0xffff, 2);
    packet.writeUInt32BE((frame * frameBytes) >>> 0, 4);
    packet.writeUInt32BE(speaker + 1, 8);
    markedFrame({ speaker, frame }).copy(packet, rtpHeaderBytes);
    log.sent += 1;
    this.#socket.send(packet, port, '127.0.0.1');
  }
}
