// A callee's end of an audio line: a UDP socket that sends a plan's RTP packets when they are due,
// or right away if it's late. Note that the line uses the test's clock, while assertions use the
// gateway's clock, which counts frames.

import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { rtpHeaderBytes, writeRtpHeader } from '../../src/media/rtp/rtp-packet.ts';
import { freeUdpPort } from './free-port.ts';
import type { Plan, PlannedPacket } from './impairments.ts';

const samplesPerMs = 8;
/** Chosen so that sequence numbers and timestamps wrap within a stream's first seconds. */
const firstSequence = 0x1_0000 - 60;
const firstTimestamp = 2 ** 32 - 1_200 * samplesPerMs;
/** Distance between the numbers of another sender and those of the first one. */
const otherSenderOffset = 12_345;

export class RtpLine implements AsyncDisposable {
  readonly #socket: Socket;
  readonly #to: { readonly host: string; readonly port: number };
  readonly #ssrc: number;
  /** First sequence number of the next plan. Numbers and time continue from plan to plan. */
  #sequence = 0;
  #elapsedMs = 0;
  #timer: NodeJS.Timeout | undefined;
  #end: (() => void) | undefined;
  #stopped = false;
  #latestMs = 0;

  private constructor(socket: Socket, to: { readonly host: string; readonly port: number }) {
    this.#socket = socket;
    this.#to = to;
    this.#ssrc = socket.address().port;
    // Once the call has ended, the other end's socket is closed.
    socket.on('error', () => undefined);
  }

  static async open(to: { readonly host: string; readonly port: number }): Promise<RtpLine> {
    // Large enough for half a minute of packets. With a smaller buffer we'd lose packets while the
    // test stands still.
    const socket = createSocket({ type: 'udp4', recvBufferSize: 4 * 1_024 * 1_024 });
    socket.bind(await freeUdpPort(), '127.0.0.1');
    await once(socket, 'listening');
    return new RtpLine(socket, to);
  }

  get port(): number {
    return this.#socket.address().port;
  }

  /**
   * The longest delay of any packet, which tells how long this process or the machine stood still.
   */
  get latestMs(): number {
    return this.#latestMs;
  }

  /**
   * Plays a plan. Resolves after `lengthMs`, or when the line is stopped. Only one plan plays at a
   * time.
   */
  async play(plan: Plan, lengthMs: number): Promise<void> {
    if (this.#stopped) return;
    const startedAt = performance.now();
    const packets = plan.toSorted((a, b) => a.sendAtMs - b.sendAtMs);
    let sent = 0;
    await new Promise<void>((resolve) => {
      this.#end = resolve;
      const step = () => {
        const nowMs = performance.now() - startedAt;
        for (; sent < packets.length; sent += 1) {
          const packet = packets[sent] as PlannedPacket;
          if (packet.sendAtMs > nowMs) break;
          this.#latestMs = Math.max(this.#latestMs, nowMs - packet.sendAtMs);
          this.#send(packet);
        }
        if (nowMs >= lengthMs) resolve();
        else this.#timer = setTimeout(step, Math.min(nextMs(packets[sent]), lengthMs) - nowMs);
      };
      step();
    });
    this.#sequence += 1 + Math.max(-1, ...plan.map(({ sequence }) => sequence));
    this.#elapsedMs += lengthMs;
  }

  /** Lets time pass without sending a packet. */
  pause(lengthMs: number): Promise<void> {
    return this.play([], lengthMs);
  }

  /** Stops the line for good. */
  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
    this.#end?.();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.stop();
    this.#socket.close();
    await once(this.#socket, 'close');
  }

  #send({ sender, sequence, spokenAtMs, payloadType, marker, payload }: PlannedPacket): void {
    const packet = new Uint8Array(rtpHeaderBytes + payload.length);
    const timestamp = (this.#elapsedMs + spokenAtMs) * samplesPerMs;
    writeRtpHeader(packet, {
      payloadType,
      marker,
      sequence: (firstSequence + this.#sequence + sequence + sender * otherSenderOffset) & 0xffff,
      timestamp: (firstTimestamp + timestamp + sender * otherSenderOffset * samplesPerMs) >>> 0,
      ssrc: this.#ssrc + sender,
    });
    packet.set(payload, rtpHeaderBytes);
    this.#socket.send(packet, this.#to.port, this.#to.host);
  }
}

function nextMs(packet: PlannedPacket | undefined): number {
  return packet?.sendAtMs ?? Number.POSITIVE_INFINITY;
}
