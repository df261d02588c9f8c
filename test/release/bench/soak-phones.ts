// The audio of all phones of a soak, over one socket. Each phone alternates between speech and
// silence. The packets that the phones receive are counted.

import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { rtpHeaderBytes, writeRtpHeader } from '../../../src/media/rtp/rtp-packet.ts';
import type { FarCall } from '../../support/far-end.ts';

const frameMs = 20;
const frameBytes = 160;
const silence = 0xff;
const speechFrames = 100;
const pauseFrames = 150;
/**
 * The kernel finds the socket by its port. A buffer of 4 MB holds one second of the packets of all
 * calls.
 */
const receiveBufferBytes = 4 * 1_024 * 1_024;

export class SoakPhones {
  packetsHeard = 0;
  readonly #socket: Socket;
  readonly #packet = Buffer.alloc(rtpHeaderBytes + frameBytes);
  #calls: readonly FarCall[] = [];
  #frame = 0;
  #timer: NodeJS.Timeout | undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('message', () => {
      this.packetsHeard += 1;
    });
    socket.on('error', () => undefined);
  }

  static async start(): Promise<SoakPhones> {
    const socket = createSocket({ type: 'udp4', recvBufferSize: receiveBufferBytes });
    socket.bind(0, '127.0.0.1');
    await once(socket, 'listening');
    const phones = new SoakPhones(socket);
    phones.#run(performance.now());
    return phones;
  }

  get port(): number {
    return this.#socket.address().port;
  }

  /** Sets the calls whose phones speak: those that are up now. */
  speak(calls: readonly FarCall[]): void {
    this.#calls = calls;
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#socket.close();
  }

  #run(startMs: number): void {
    this.#frame += 1;
    for (const [index, { audioPort }] of this.#calls.entries()) {
      if (audioPort !== undefined) this.#send(audioPort, index);
    }
    const waitMs = startMs + this.#frame * frameMs - performance.now();
    this.#timer = setTimeout(() => this.#run(startMs), Math.max(1, waitMs));
  }

  #send(port: number, index: number): void {
    const packet = this.#packet;
    const at = (this.#frame + index * 37) % (speechFrames + pauseFrames);
    if (at < speechFrames) {
      // Loud audio in which neighbouring bytes differ.
      for (let byte = 0; byte < frameBytes; byte += 1) {
        packet[rtpHeaderBytes + byte] = (byte * 13 + at * 7) & 0xff;
      }
    } else packet.fill(silence, rtpHeaderBytes);
    writeRtpHeader(packet, {
      ...{ payloadType: 0, marker: false, ssrc: port },
      ...{ sequence: this.#frame & 0xffff, timestamp: (this.#frame * frameBytes) >>> 0 },
    });
    this.#socket.send(Buffer.from(packet), port, '127.0.0.1');
  }
}
