// A network between a gateway and a phone, on loopback: it forwards each UDP packet, and loses,
// delays, repeats and reorders them as a seeded random generator says. It counts what it did, so
// that a test can compare that with what either side reports.

import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { type Random, randomFrom } from '../faults/random.ts';

export type Impairments = {
  readonly seed: number;
  /** Share of the packets that are lost, from 0 to 1. */
  readonly loss?: number;
  /** Number of packets that are lost in a row. Default: 1. */
  readonly burst?: number;
  /** Share of the packets that arrive twice. */
  readonly repeat?: number;
  /** Share of the packets that arrive 50 ms late, after the two that follow them. */
  readonly reorder?: number;
  /** Each packet is late by up to this many milliseconds. */
  readonly jitterMs?: number;
  /** Delay of all packets, in milliseconds. */
  readonly delayMs?: number;
};

const reorderedByMs = 50;
/** The longest wait for packets that are still on their way. */
const drainMs = 300;

type Packet = { readonly sequence: number; readonly timestamp: number };
/** A packet that has left the relay. */
type Delivered = Packet & { readonly atMs: number };

type Sockets = Readonly<Record<'gateway' | 'gatewayRtcp' | 'phone' | 'phoneRtcp', Socket>>;

/** One direction of the audio. */
export class Direction {
  readonly #impairments: Impairments;
  readonly #random: Random;
  #lostLeft = 0;
  readonly #taken: Packet[] = [];
  readonly delivered: Delivered[] = [];

  constructor(impairments: Impairments) {
    this.#impairments = impairments;
    this.#random = randomFrom(impairments.seed);
  }

  /** Decides a packet's fate. Returns the delay of each copy that arrives; empty if it's lost. */
  delaysMs(packet: Packet): readonly number[] {
    const { loss = 0, burst = 1, repeat = 0, reorder = 0 } = this.#impairments;
    const { jitterMs = 0, delayMs = 0 } = this.#impairments;
    this.#taken.push(packet);
    // A receiver counts from the first packet that arrives (RFC 3550, A.1), so the first one does.
    if (this.#taken.length === 1) return [delayMs];
    const chance = this.#random.next();
    if (this.#lostLeft === 0 && chance < loss / burst) this.#lostLeft = burst;
    if (this.#lostLeft > 0) {
      this.#lostLeft -= 1;
      return [];
    }
    const late = this.#random.next() < reorder ? reorderedByMs : 0;
    const ms = delayMs + late + this.#random.next() * jitterMs;
    return this.#random.next() < repeat ? [ms, ms + 5] : [ms];
  }

  /** Share of the packets, from the first to the last that arrived, that never did. */
  get lossPercent(): number {
    const arrived = new Set(this.delivered.map(({ sequence }) => sequence));
    const isThere = this.#taken.map(({ sequence }) => arrived.has(sequence));
    const between = isThere.slice(isThere.indexOf(true), isThere.lastIndexOf(true) + 1);
    return (100 * between.filter((isOne) => !isOne).length) / between.length;
  }

  /** Mean of the estimate of RFC 3550, A.8, over the packets as they left the relay. */
  get meanJitterMs(): number {
    let [estimate, sum] = [0, 0];
    for (const [index, packet] of this.delivered.slice(1).entries()) {
      const before = this.delivered[index] as Delivered;
      const spokenMs = ((packet.timestamp - before.timestamp) | 0) / 8;
      const difference = Math.abs(packet.atMs - before.atMs - spokenMs);
      estimate += (difference - estimate) / 16;
      sum += estimate;
    }
    return sum / Math.max(1, this.delivered.length - 1);
  }
}

export class ImpairingRelay implements AsyncDisposable {
  readonly toGateway: Direction;
  readonly toPhone: Direction;
  /** How long each report took through the relay, in milliseconds. */
  readonly reportDelaysMs: number[] = [];
  readonly #sockets: Sockets;
  /** Reports share the delay of the audio. They aren't lost, so that the last one arrives. */
  readonly #delayMs: number;

  private constructor(
    sockets: Sockets,
    { toGateway, toPhone }: { readonly toGateway: Impairments; readonly toPhone: Impairments },
  ) {
    this.#sockets = sockets;
    this.toGateway = new Direction(toGateway);
    this.toPhone = new Direction(toPhone);
    this.#delayMs = toGateway.delayMs ?? 0;
  }

  static async open(impairments: {
    readonly toGateway: Impairments;
    readonly toPhone: Impairments;
  }): Promise<ImpairingRelay> {
    const [gateway, gatewayRtcp, phone, phoneRtcp] = await Promise.all([
      openSocket(),
      openSocket(),
      openSocket(),
      openSocket(),
    ]);
    return new ImpairingRelay({ gateway, gatewayRtcp, phone, phoneRtcp }, impairments);
  }

  /** The ports for the gateway, which takes the relay for the phone. */
  get ports(): { readonly rtp: number; readonly rtcp: number } {
    return { rtp: portOf(this.#sockets.gateway), rtcp: portOf(this.#sockets.gatewayRtcp) };
  }

  /** The ports for the phone, which takes the relay for the gateway. */
  get phonePorts(): { readonly rtp: number; readonly rtcp: number } {
    return { rtp: portOf(this.#sockets.phone), rtcp: portOf(this.#sockets.phoneRtcp) };
  }

  /** Begins to forward. RTCP goes to the port above that of the gateway's audio. */
  connect(gatewayPort: number, phone: { readonly rtp: number; readonly rtcp: number }): void {
    const { gateway, gatewayRtcp, phone: toPhone, phoneRtcp } = this.#sockets;
    gateway.on('message', (packet) => forward(packet, this.toPhone, toPhone, phone.rtp));
    toPhone.on('message', (packet) => forward(packet, this.toGateway, gateway, gatewayPort));
    gatewayRtcp.on('message', (packet) => this.#report(packet, phoneRtcp, phone.rtcp));
    phoneRtcp.on('message', (packet) => this.#report(packet, gatewayRtcp, gatewayPort + 1));
  }

  #report(packet: Buffer, from: Socket, toPort: number): void {
    const arrivedMs = performance.now();
    setTimeout(() => {
      this.reportDelaysMs.push(performance.now() - arrivedMs);
      from.send(packet, toPort, '127.0.0.1');
    }, this.#delayMs);
  }

  /** Waits until nothing is on its way. */
  async drain(): Promise<void> {
    await pause(drainMs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.drain();
    for (const socket of Object.values(this.#sockets)) socket.close();
  }
}

function forward(packet: Buffer, direction: Direction, from: Socket, toPort: number): void {
  const [sequence, timestamp] = [packet.readUInt16BE(2), packet.readUInt32BE(4)];
  const deliver = (): void => {
    direction.delivered.push({ sequence, timestamp, atMs: performance.now() });
    from.send(packet, toPort, '127.0.0.1');
  };
  for (const ms of direction.delaysMs({ sequence, timestamp })) {
    if (ms === 0) deliver();
    else setTimeout(deliver, ms);
  }
}

async function openSocket(): Promise<Socket> {
  const socket = createSocket({ type: 'udp4', recvBufferSize: 1_024 * 1_024 });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return socket;
}

function portOf(socket: Socket): number {
  return socket.address().port;
}
