// The far end of a call: a UDP socket that sends RTP as a carrier does, and keeps what it receives.

import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import {
  createRtpHeader,
  type RtpHeader,
  readRtp,
  rtpHeaderBytes,
  writeRtpHeader,
} from '../../../src/media/rtp/rtp-packet.ts';
import { freeUdpPort } from '../../support/free-port.ts';

export type Received = RtpHeader & { readonly payload: Buffer; readonly fromPort: number };

export class FarEnd implements AsyncDisposable {
  readonly received: Received[] = [];
  readonly #socket: Socket;
  readonly #streams = new Set<NodeJS.Timeout>();
  #sequence = 65_500;
  #timestamp = 4_294_960_000;
  ssrc = 0x1234;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('message', (packet, from) => {
      const header = createRtpHeader();
      if (!readRtp(packet, header)) return;
      const payload = packet.subarray(header.payloadStart, header.payloadEnd);
      this.received.push({ ...header, payload, fromPort: from.port });
    });
  }

  static async open(host = '127.0.0.1', port?: number): Promise<FarEnd> {
    const type = host.includes(':') ? 'udp6' : 'udp4';
    const socket = createSocket({ type, recvBufferSize: 4 * 1_024 * 1_024 });
    socket.bind(port ?? (await freeUdpPort()), host);
    await once(socket, 'listening');
    return new FarEnd(socket);
  }

  get port(): number {
    return this.#socket.address().port;
  }

  /** Returns the same sender behind another port. It continues the stream of the previous one. */
  continue(former: FarEnd): void {
    this.ssrc = former.ssrc;
    this.#sequence = former.#sequence;
    this.#timestamp = former.#timestamp;
  }

  /** Sends one packet of 20 ms. Each code word in it is `byte`. */
  send(toPort: number, byte: number, host = '127.0.0.1', payloadType = 0): void {
    this.#send(toPort, Buffer.alloc(160, byte), host, payloadType);
    this.#timestamp += 160;
  }

  /** Sends the three end packets of a released key (RFC 4733). */
  press(toPort: number, event: number): void {
    const payload = Uint8Array.from([event, 0x8a, 0x03, 0x20]);
    for (let count = 0; count < 3; count += 1) this.#send(toPort, payload, '127.0.0.1', 101);
    this.#timestamp += 800;
  }

  #send(toPort: number, payload: Uint8Array, host: string, payloadType: number): void {
    const packet = Buffer.alloc(rtpHeaderBytes + payload.length);
    writeRtpHeader(packet, {
      payloadType,
      marker: false,
      sequence: this.#sequence,
      timestamp: this.#timestamp,
      ssrc: this.ssrc,
    });
    packet.set(payload, rtpHeaderBytes);
    this.#sequence += 1;
    this.#socket.send(packet, toPort, host);
  }

  /** Sends a packet every 20 ms until the returned function is called or the far end closes. */
  stream(toPort: number, byte: number, host = '127.0.0.1'): () => void {
    const timer = setInterval(() => this.send(toPort, byte, host), 20);
    this.#streams.add(timer);
    return () => clearInterval(timer);
  }

  sendRaw(toPort: number, packet: Uint8Array): void {
    this.#socket.send(packet, toPort, '127.0.0.1');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const timer of this.#streams) clearInterval(timer);
    await new Promise<void>((resolve) => this.#socket.close(() => resolve()));
  }
}
