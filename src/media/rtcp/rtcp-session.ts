// One leg's RTCP (RFC 3550, section 6). Every few seconds we report what we've sent and what we've
// heard, because some carriers hang up on a far end that sends no RTCP. From the far end's reports
// and our own counts we know how the call sounds on both sides.

import type { CallQuality } from '../../calls/life/call-quality.ts';
import type { PlayoutCounts } from '../rtp/jitter-buffer.ts';
import { type RtpHeader, rtpHeaderBytes } from '../rtp/rtp-packet.ts';
import { ReceptionStatistics } from './reception-statistics.ts';
import { middleOf, ntpTimeOf, readReports, type TheirReport, writeReport } from './rtcp-packets.ts';
import { meanOpinionScore, rFactor } from './voice-quality.ts';

/** RFC 3550, section 6.2: 5 s for two members, half of it before the first report. */
const intervalMs = 5_000;
/** The interval varies by half in each direction, so that calls don't report in step. */
const variation = 0.5;
const unitsPerSecond = 65_536;
/** A far end whose clock counts hundredths of a second may report a delay that is too long. */
const clockRoundingMs = 20;
const unitsPerMs = 8;
/**
 * Time that we add to the network's: a frame of 20 ms on each side, and 40 ms in the jitter buffer.
 */
const ownDelayMs = 80;
/** Assumed one-way delay of a far end that doesn't report. */
const usualDelayMs = 50;

export type RtcpOptions = {
  readonly ssrc: number;
  /** The sequence number of our first packet. */
  readonly firstSequence: number;
  readonly cname: string;
  readonly tickMs: number;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Since when what we receive now may have arrived. Undefined if it has just arrived. */
  readonly sleptSince: () => number | undefined;
  /** From 0 up to, but not including, 1. */
  readonly random: () => number;
};

type Counted = { readonly expected: number; readonly received: number; readonly jitterMs: number };

export class RtcpSession {
  readonly #options: RtcpOptions;
  readonly #send: (packet: Uint8Array) => void;
  #sender: ReceptionStatistics | undefined;
  /** Senders before that one. Another follows e.g. when a call is transferred or resumed. */
  #former: Counted = { expected: 0, received: 0, jitterMs: 0 };
  /** The arrival of the packet that's being counted. */
  readonly #arrival = { sinceMs: 0, untilMs: 0 };
  readonly #sent = { packets: 0, bytes: 0 };
  /** Packets that we had sent at the last report and at the one before. */
  #sentAtReports: readonly [last: number, beforeThat: number] = [0, 0];
  #ticksLeft: number;
  #lastHeard: (NonNullable<TheirReport['sentAt']> & { readonly atMs: number }) | undefined;
  #theirs: TheirReport['heard'];
  #roundTripMs: number | undefined;

  constructor(options: RtcpOptions, send: (packet: Uint8Array) => void) {
    this.#options = options;
    this.#send = send;
    this.#ticksLeft = this.#nextIntervalTicks() / 2;
  }

  /** Counts a packet from the far end, even if we can't play it. */
  noteReceived({ ssrc, sequence, timestamp }: RtpHeader, isAudio: boolean): void {
    const nowMs = this.#options.now();
    this.#arrival.sinceMs = this.#options.sleptSince() ?? nowMs;
    this.#arrival.untilMs = nowMs;
    this.#senderOf(ssrc).note(sequence, timestamp, isAudio, this.#arrival);
  }

  #senderOf(ssrc: number): ReceptionStatistics {
    if (this.#sender?.ssrc === ssrc) return this.#sender;
    this.#former = this.#counted();
    this.#sender = new ReceptionStatistics(ssrc);
    return this.#sender;
  }

  /** Counts all senders together. */
  #counted(): Counted {
    const [former, sender] = [this.#former, this.#sender];
    if (sender === undefined) return former;
    const received = former.received + sender.received;
    const jitterMs = former.jitterMs * former.received + sender.meanJitterMs * sender.received;
    return {
      expected: former.expected + sender.expected,
      received,
      jitterMs: received === 0 ? 0 : jitterMs / received,
    };
  }

  /** Counts a packet that we've sent, without the tag of SRTP. Reports count only its payload. */
  noteSent(packetBytes: number): void {
    this.#sent.packets += 1;
    this.#sent.bytes += packetBytes - rtpHeaderBytes;
  }

  /** Reads a compound packet that comes from the far end. */
  receive(datagram: Uint8Array): void {
    const nowMs = this.#options.now();
    // If the thread slept, the middle is off by half of that at most.
    const now = (nowMs + (this.#options.sleptSince() ?? nowMs)) / 2;
    const { sentAt, heard } = readReports(datagram, this.#options.ssrc);
    if (sentAt !== undefined) this.#lastHeard = { ...sentAt, atMs: now };
    if (heard === undefined) return;
    this.#theirs = heard;
    if (heard.lastReport === 0) return;
    const units = middleOf(ntpTimeOf(now)) - heard.lastReport - heard.sinceLastReport;
    // Signed, because the clocks round: a round trip of nearly 0 may come out negative.
    const roundTripMs = ((units | 0) / unitsPerSecond) * 1_000;
    // Anything else means that a clock was set, or that the report is wrong.
    if (roundTripMs >= -clockRoundingMs && roundTripMs < 10_000)
      this.#roundTripMs = Math.max(0, roundTripMs);
  }

  /** Advances by one tick. `rtpTimestamp` is the current one of the packets that we send. */
  tick(rtpTimestamp: number): void {
    this.#ticksLeft -= 1;
    if (this.#ticksLeft > 0) return;
    this.#ticksLeft = this.#nextIntervalTicks();
    this.#report(rtpTimestamp, false);
  }

  /** Sends the last report, with a BYE (section 6.6). */
  end(rtpTimestamp: number): void {
    this.#report(rtpTimestamp, true);
  }

  /** @returns undefined if the far end hasn't sent any audio */
  quality({ concealedSamples, unplayedPackets }: PlayoutCounts): CallQuality | undefined {
    const { expected, received, jitterMs } = this.#counted();
    if (expected === 0) return undefined;
    const lossPercent = (100 * (expected - received)) / expected;
    // To a listener, a packet that came too late to be played is lost.
    const unheardPercent = Math.min(100, lossPercent + (100 * unplayedPackets) / expected);
    const roundTripMs = this.#roundTripMs;
    const delayMs = (roundTripMs === undefined ? usualDelayMs : roundTripMs / 2) + ownDelayMs;
    const r = rFactor(unheardPercent, delayMs);
    const theirs = this.#theirs;
    return {
      lossPercent: rounded(lossPercent, 2),
      jitterMs: rounded(jitterMs, 1),
      concealedMs: rounded(concealedSamples / unitsPerMs, 0),
      ...(roundTripMs !== undefined && { roundTripMs: rounded(roundTripMs, 0) }),
      rFactor: rounded(r, 1),
      mos: rounded(meanOpinionScore(r), 2),
      ...(theirs !== undefined && {
        remote: {
          lossPercent: rounded(this.#lossOfOurs(theirs), 2),
          jitterMs: rounded(theirs.jitter / unitsPerMs, 1),
        },
      }),
    };
  }

  /** Share of our packets up to the last that the far end had heard when it reported. */
  #lossOfOurs({ packetsLost, highestSequence }: NonNullable<TheirReport['heard']>): number {
    const { packets } = this.#sent;
    const expected = (highestSequence - this.#options.firstSequence + 1) >>> 0;
    // Anything else means that the far end counts from another number than ours.
    const isPlausible = expected > 0 && expected <= packets;
    const share = Math.max(0, packetsLost) / Math.max(1, isPlausible ? expected : packets);
    return Math.min(100, 100 * share);
  }

  #report(rtpTimestamp: number, isLast: boolean): void {
    const { ssrc, cname, now } = this.#options;
    const at = now();
    const sender = this.#sender;
    const { packets, bytes } = this.#sent;
    const [last, beforeThat] = this.#sentAtReports;
    // Another sender couldn't tell its round trip from a former sender's report.
    const heard = this.#lastHeard?.ssrc === sender?.ssrc ? this.#lastHeard : undefined;
    this.#sentAtReports = [packets, last];
    const report = writeReport({
      ...{ ssrc, cname, isLast },
      ...(packets > beforeThat && {
        sent: { at: ntpTimeOf(at), rtpTimestamp, packets, bytes },
      }),
      ...(sender !== undefined && {
        received: {
          ...{ ssrc: sender.ssrc, ...sender.report(), lastReport: heard?.middle ?? 0 },
          sinceLastReport:
            heard === undefined
              ? 0
              : Math.round(((at - heard.atMs) / 1_000) * unitsPerSecond) >>> 0,
        },
      }),
    });
    this.#send(report);
  }

  #nextIntervalTicks(): number {
    const { random, tickMs } = this.#options;
    return (intervalMs * (1 - variation + 2 * variation * random())) / tickMs;
  }
}

function rounded(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}
