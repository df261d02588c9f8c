// What a line does to a stream of RTP, as changes of a plan: which packet is sent when. Pure: the same plan and the same random
// numbers give the same stream.

import { decodeTable, encode } from '../../src/media/g711.ts';
import { comfortNoisePayloadType } from '../../src/media/sdp.ts';

export const packetMs = 20;
const packetSamples = 160;
/** About -44 dBFS. */
const quietPeak = 200;
/** 200 ms: so long a sender takes the pause for one within a word. */
const hangoverPackets = 10;
/** Five a second. */
const comfortNoiseEvery = 10;
/** Its level, -60 dBov. */
const comfortNoise = Uint8Array.of(60);

export type PlannedPacket = {
  /** From the start of the plan. */
  readonly sendAtMs: number;
  /** When it was spoken, from the start of the plan. */
  readonly spokenAtMs: number;
  /** Which sender, if there are several: each has an SSRC and numbers of its own. */
  readonly sender: number;
  /** From the start of the plan. */
  readonly sequence: number;
  readonly payloadType: number;
  readonly marker: boolean;
  readonly payload: Uint8Array;
};

export type Plan = readonly PlannedPacket[];
export type Impairment = (plan: Plan) => Plan;

/** µ-law, 20 ms a packet. */
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

/** Each packet is late by a time of its own: those more than 20 ms apart overtake each other. */
export function jitter(maxMs: number, random: () => number): Impairment {
  return (plan) =>
    plan.map((packet) => ({ ...packet, sendAtMs: packet.sendAtMs + random() * maxMs }));
}

/** A packet changes places with the next one. */
export function reorder(share: number, random: () => number): Impairment {
  return (plan) =>
    plan.map((packet) =>
      random() < share ? { ...packet, sendAtMs: packet.sendAtMs + packetMs * 1.5 } : packet,
    );
}

/** Nothing comes from one time to the other, then all of it at once. */
export function stall(fromMs: number, toMs: number): Impairment {
  return (plan) =>
    plan.map((packet) =>
      packet.sendAtMs >= fromMs && packet.sendAtMs < toMs ? { ...packet, sendAtMs: toMs } : packet,
    );
}

/** A stall of that length, again and again. */
export function stallEvery(everyMs: number, stallMs: number): Impairment {
  return (plan) =>
    plan.map((packet) => {
      const sinceMs = packet.sendAtMs % everyMs;
      const late = sinceMs < everyMs - stallMs ? 0 : everyMs - sinceMs;
      return { ...packet, sendAtMs: packet.sendAtMs + late };
    });
}

/** A sender whose clock runs at another speed: 1.02 is 2 % slow. */
export function drift(factor: number): Impairment {
  return (plan) => plan.map((packet) => ({ ...packet, sendAtMs: packet.sendAtMs * factor }));
}

/** From then on another sender at the same address: new SSRC, new numbers, and no word of it in the signalling. */
export function changeSender(fromMs: number): Impairment {
  return (plan) =>
    plan.map((packet) =>
      packet.spokenAtMs < fromMs ? packet : { ...packet, sender: packet.sender + 1 },
    );
}

/** Silence is not sent: a comfort noise packet (RFC 3389) as it begins and now and then, a marker where sound is back. */
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
  // What is not sent has no number, and the timestamp tells of the gap.
  return sent.map((packet, sequence) => ({ ...packet, sequence }));
};

function isSilent(payload: Uint8Array): boolean {
  return payload.every((byte) => Math.abs(decodeTable.PCMU[byte] ?? 0) < quietPeak);
}
