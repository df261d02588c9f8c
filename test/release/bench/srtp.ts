// Measures what SRTP costs: the CPU time to protect and to unprotect a packet of 20 ms, and a
// report. The bench fails if either direction of the audio takes longer than 4 µs. With `--fuzzed
// 1000000` it also sends that many invalid packets to sessions, and measures their memory.

import { randomBytes } from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { writeReport } from '../../../src/media/rtcp/rtcp-packets.ts';
import { rtpHeaderBytes, writeRtpHeader } from '../../../src/media/rtp/rtp-packet.ts';
import { newCryptoLines } from '../../../src/media/srtp/sdes.ts';
import type { SrtpKey } from '../../../src/media/srtp/srtp-keys.ts';
import { SrtpReceiver } from '../../../src/media/srtp/srtp-receiver.ts';
import { SrtpSender } from '../../../src/media/srtp/srtp-sender.ts';
import { PacketFuzz } from '../../media/srtp/packet-fuzz.ts';
import { optionsOf } from './options.ts';
import { percentile, threadCpuMs } from './process-usage.ts';

const mostNs = 4_000;
const frameBytes = 160;
/** A byte for each packet would be a megabyte. */
const mostGrownKb = 500;
/** Packets between two readings of the clock. */
const batch = 1_000;

export async function benchSrtp(args: readonly string[]): Promise<void> {
  const { packets, rounds, fuzzed } = optionsOf(args, { packets: 200_000, rounds: 5, fuzzed: 0 });
  for (const { key } of newCryptoLines()) {
    console.log(`${key.suite}, median and best of ${rounds} rounds of ${packets} packets`);
    const audio = Array.from({ length: rounds }, () => costOf(key, packets, audioPacket));
    const reports = Array.from({ length: rounds }, () => costOf(key, packets, report));
    print(`protect RTP, ${rtpHeaderBytes + frameBytes} bytes`, audio, 'protectNs');
    print('unprotect RTP', audio, 'unprotectNs');
    print('protect RTCP', reports, 'protectNs');
    print('unprotect RTCP', reports, 'unprotectNs');
    const medians = (['protectNs', 'unprotectNs'] as const).map((what) => median(audio, what));
    if (medians.every((ns) => ns <= mostNs)) continue;
    process.exitCode = 1;
    console.log(`  FAILED: a packet takes longer than ${mostNs} ns`);
  }
  if (fuzzed > 0) fuzz(fuzzed);
}

/** Sends packets of which most are noise, changed, repeated or hostile. */
function fuzz(packets: number): void {
  const sessions = new PacketFuzz(Date.now());
  // Until then V8 compiles the code.
  sessions.run(packets / 10);
  const before = liveBytes();
  const { valid, received, invalid, discarded } = sessions.run(packets);
  const grownKb = (liveBytes() - before) / 1_024;
  console.log(`${packets} fuzzed packets and reports`);
  console.log(`  valid ${valid}, heard ${received}; invalid ${invalid}, discarded ${discarded}`);
  console.log(`  heap and buffers grew by ${grownKb.toFixed(0)} kB`);
  if (valid === received && invalid === discarded && grownKb < mostGrownKb) return;
  process.exitCode = 1;
  console.log('  FAILED: an invalid packet was heard, a valid one was not, or memory grew');
}

/** The heap and the buffers after a collection. */
function liveBytes(): number {
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  collect();
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** CPU time per packet. */
type Cost = { readonly protectNs: number; readonly unprotectNs: number };

type Kind = {
  /** Returns packet number `index`. */
  readonly packet: (index: number) => Uint8Array;
  readonly protect: (sender: SrtpSender, packet: Uint8Array) => Uint8Array;
  readonly unprotect: (receiver: SrtpReceiver, packet: Uint8Array) => Uint8Array | string;
};

const audioPacket: Kind = {
  packet: (index) => {
    const packet = new Uint8Array(randomBytes(rtpHeaderBytes + frameBytes));
    const fields = { payloadType: 0, marker: false, ssrc: 7, timestamp: index * frameBytes };
    writeRtpHeader(packet, { ...fields, sequence: index & 0xffff });
    return packet;
  },
  protect: (sender, packet) => sender.protect(packet),
  unprotect: (receiver, packet) => receiver.unprotect(packet),
};

const report: Kind = {
  packet: (index) =>
    writeReport({
      ...{ ssrc: 7, cname: 'bench', isLast: false },
      sent: { at: { seconds: index, fraction: 0 }, rtpTimestamp: index, packets: 1, bytes: 160 },
    }),
  protect: (sender, packet) => sender.protectRtcp(packet),
  unprotect: (receiver, packet) => receiver.unprotectRtcp(packet),
};

function costOf(key: SrtpKey, packets: number, kind: Kind): Cost {
  const [sender, farEnd] = [new SrtpSender(key), new SrtpSender(key)];
  const receiver = new SrtpReceiver(key);
  const spent = { protectMs: 0, unprotectMs: 0 };
  for (let from = 0; from < packets; from += batch) {
    const plain = Array.from({ length: batch }, (_, index) => kind.packet(from + index));
    const startMs = threadCpuMs();
    for (const packet of plain) kind.protect(sender, packet);
    spent.protectMs += threadCpuMs() - startMs;
    // A socket also delivers Buffers.
    const sealed = plain.map((packet) => Buffer.from(kind.protect(farEnd, packet)));
    const sealedMs = threadCpuMs();
    for (const packet of sealed) {
      if (typeof kind.unprotect(receiver, packet) === 'string') throw new Error('not authentic');
    }
    spent.unprotectMs += threadCpuMs() - sealedMs;
  }
  const nsOf = (ms: number) => (ms * 1e6) / packets;
  return { protectNs: nsOf(spent.protectMs), unprotectNs: nsOf(spent.unprotectMs) };
}

function median(costs: readonly Cost[], what: keyof Cost): number {
  return percentile(
    costs.map((cost) => cost[what]),
    0.5,
  );
}

function print(title: string, costs: readonly Cost[], what: keyof Cost): void {
  const best = Math.min(...costs.map((cost) => cost[what]));
  console.log(`  ${title.padEnd(30)} ${median(costs, what).toFixed(0)} ns, ${best.toFixed(0)} ns`);
}
