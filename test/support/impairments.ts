// Impairs an RTP stream by changing the plan for when to send each packet. The functions are pure,
// so the same plan and random numbers always give the same stream.

import { decodeTable, encode } from '../../src/media/g711.ts';
import { comfortNoisePayloadType } from '../../src/media/sdp.ts';

export const packetMs = 20;
const packetSamples = 160;
/** About -44 dBFS. */
const quietPeak = 200;
/** 200 ms. Senders treat a shorter pause as one within a word. */
const hangoverPackets = 10;
/** One comfort noise packet per ten packets: five per second. */
const comfortNoiseEvery = 10;
/** -60 dBov. */
const comfortNoise = Uint8Array.of(60);

export type PlannedPacket = {
  /** Time from the start of the plan. */
  readonly sendAtMs: number;
  /** When it was spoken, from the start of the plan. */
  readonly spokenAtMs: number;
  /** Index of the sender. Each sender has a separate SSRC and separate sequence numbers. */
  readonly sender: number;
  /** Counts from 0 at the start of the plan. */
  readonly sequence: number;
  readonly payloadType: number;
  readonly marker: boolean;
  readonly payload: Uint8Array;
};

export type Plan = readonly PlannedPacket[];
export type Impairment = (plan: Plan) => Plan;

/** Returns the plan of an unimpaired stream: µ-law, 20 ms per packet. */
export function planOf(samples: Int16Array): Plan {
  const count = Math.ceil(samples.length / packetSamples);
  return Array.from({ length: count }, (_, index) => ({
    sendAtMs: index * packetMs,
    spokenAtMs: index * packetMs,
    sender: 0,
    sequence: index,
    payloadType: 0,
    marker: index === 0,
    payload: encode('PCMU', samples.subarray(index * packetSamples, (index + 1) * packetSamples)),
  }));
}

export function impaired(plan: Plan, ...impairments: readonly Impairment[]): Plan {
  return impairments.reduce((before, impair) => impair(before), plan);
}

export function lose(share: number, random: () => number): Impairment {
  return (plan) => plan.filter(() => random() >= share);
}

/**
 * Delays each packet by a random time. Packets whose delays differ by more than 20 ms overtake each
 * other.
 */
export function jitter(maxMs: number, random: () => number): Impairment {
  return (plan) =>
    plan.map((packet) => ({ ...packet, sendAtMs: packet.sendAtMs + random() * maxMs }));
}

/** Swaps a share of the packets with the next packet. */
export function reorder(share: number, random: () => number): Impairment {
  return (plan) =>
    plan.map((packet) =>
      random() < share ? { ...packet, sendAtMs: packet.sendAtMs + packetMs * 1.5 } : packet,
    );
}

/** Holds back all packets from `fromMs` to `toMs`, then sends them in one burst. */
export function stall(fromMs: number, toMs: number): Impairment {
  return (plan) =>
    plan.map((packet) =>
      packet.sendAtMs >= fromMs && packet.sendAtMs < toMs ? { ...packet, sendAtMs: toMs } : packet,
    );
}

/** Holds back the packets for `stallMs` at the end of every `everyMs`. */
export function stallEvery(everyMs: number, stallMs: number): Impairment {
  return (plan) =>
    plan.map((packet) => {
      const sinceMs = packet.sendAtMs % everyMs;
      const late = sinceMs < everyMs - stallMs ? 0 : everyMs - sinceMs;
      return { ...packet, sendAtMs: packet.sendAtMs + late };
    });
}

/** Simulates a sender whose clock is off. A factor of 1.02 makes it 2 % slow. */
export function drift(factor: number): Impairment {
  return (plan) => plan.map((packet) => ({ ...packet, sendAtMs: packet.sendAtMs * factor }));
}

/**
 * Replaces the sender from `fromMs` on, at the same address: new SSRC and new sequence numbers,
 * without any signalling.
 */
export function changeSender(fromMs: number): Impairment {
  return (plan) =>
    plan.map((packet) =>
      packet.spokenAtMs < fromMs ? packet : { ...packet, sender: packet.sender + 1 },
    );
}

/**
 * Suppresses silence. A comfort noise packet (RFC 3389) is sent at the start of a silence and every
 * ten packets. A marker is set when sound returns.
 */
export const suppressSilence: Impairment = (plan) => {
  let silent = 0;
  const sent = plan.flatMap((packet) => {
    if (!isSilent(packet.payload)) {
      const marker = packet.marker || silent > hangoverPackets;
      silent = 0;
      return [{ ...packet, marker }];
    }
    silent += 1;
    if (silent <= hangoverPackets) return [packet];
    if ((silent - hangoverPackets) % comfortNoiseEvery !== 1) return [];
    return [{ ...packet, payloadType: comfortNoisePayloadType, payload: comfortNoise }];
  });
  // Packets that aren't sent don't use up sequence numbers. Only the timestamp shows the gap.
  return sent.map((packet, sequence) => ({ ...packet, sequence }));
};

function isSilent(payload: Uint8Array): boolean {
  return payload.every((byte) => Math.abs(decodeTable.PCMU[byte] ?? 0) < quietPeak);
}
