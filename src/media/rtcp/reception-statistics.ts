// Counts the packets of one sender, as RFC 3550 describes (sections 6.4.1, A.1, A.3 and A.8): what
// was sent, judging by the sequence numbers, what arrived, and how irregularly.

import { sequenceDistance, timestampDistance } from '../rtp/rtp-packet.ts';

const sequences = 0x1_0000;
/** A gap of this many packets, a minute of audio, isn't loss: the sender has started over. */
const maxDropout = 3_000;
/** A packet that is two seconds old isn't late: the sender has started over. */
const maxMisorder = 100;
/** Each packet that isn't too old has a place of its own. */
const rememberedPackets = 128;
/** RTP timestamps per millisecond, at 8 kHz. */
const unitsPerMs = 8;
/** RFC 3550, A.8: each packet moves the estimate by a sixteenth. */
const jitterGain = 16;

/** What a report block says about a sender. */
export type ReceptionReport = {
  /** Share of the packets since the last report that were lost, in 256ths. */
  readonly fractionLost: number;
  readonly packetsLost: number;
  /** The highest sequence number, with the number of its wraps in the upper 16 bits. */
  readonly highestSequence: number;
  /** In timestamp units. */
  readonly jitter: number;
};

/** When a packet arrived. A thread that sleeps between two ticks doesn't know that exactly. */
export type Arrival = { readonly sinceMs: number; readonly untilMs: number };

export class ReceptionStatistics {
  readonly ssrc: number;
  #isStarted = false;
  #first = 0;
  #highest = 0;
  /** Packets that arrived. A report counts repeated ones, too (RFC 3550, 6.4.1). */
  #received = 0;
  #repeated = 0;
  /** The last packets that arrived: by the lower bits of its number, each with its wraps. */
  readonly #seen = new Float64Array(rememberedPackets);
  /** The number that follows a far-off one. It confirms that the sender has started over. */
  #confirming: number | undefined;
  #expectedBefore = 0;
  #receivedBefore = 0;
  /** Packets of streams that the sender has started over. */
  #closed = { expected: 0, received: 0 };
  /** When the last audio packet arrived. */
  #arrivedMs: number | undefined;
  #jitter = 0;
  #jitterSum = 0;
  #jitterCount = 0;
  #lastTimestamp = 0;

  constructor(ssrc: number) {
    this.ssrc = ssrc;
  }

  /** Packets that the sender has sent between the first and the last that arrived. */
  get expected(): number {
    return this.#closed.expected + this.#expectedNow;
  }

  /** Packets that arrived, each counted once. */
  get received(): number {
    return this.#closed.received + this.#receivedOnce;
  }

  /** A packet from before the first one isn't among those that we expected. */
  get #receivedOnce(): number {
    return Math.min(this.#received - this.#repeated, this.#expectedNow);
  }

  /** Mean of the jitter estimate, in milliseconds. */
  get meanJitterMs(): number {
    return this.#jitterCount === 0 ? 0 : this.#jitterSum / this.#jitterCount / unitsPerMs;
  }

  get #expectedNow(): number {
    return this.#isStarted ? this.#highest - this.#first + 1 : 0;
  }

  /** @param isAudio false for a key press, all packets of which have the same timestamp */
  note(sequence: number, timestamp: number, isAudio: boolean, arrival: Arrival): void {
    if (!this.#count(sequence) || !isAudio) return;
    const elapsed = timestampDistance(timestamp, this.#lastTimestamp) / unitsPerMs;
    this.#lastTimestamp = timestamp;
    const expectedMs = (this.#arrivedMs ?? arrival.untilMs - elapsed) + elapsed;
    const arrivedMs = arrivalOf(arrival, expectedMs);
    if (this.#arrivedMs !== undefined) this.#measure(arrivedMs - expectedMs);
    this.#arrivedMs = arrivedMs;
  }

  /**
   * RFC 3550, A.1: a single packet with a far-off sequence number is ignored, because it may be
   * corrupt or forged. If the next packet follows it, the sender has started over.
   *
   * @returns false if the packet is ignored
   */
  #count(sequence: number): boolean {
    if (!this.#isStarted) {
      this.#start(sequence);
      return true;
    }
    const ahead = sequenceDistance(sequence, this.#highest % sequences);
    if (ahead > maxDropout || ahead < -maxMisorder) return this.#confirmRestart(sequence);
    this.#confirming = undefined;
    this.#receive(this.#highest + ahead);
    return true;
  }

  #receive(sequence: number): void {
    const place = sequence & (rememberedPackets - 1);
    if (this.#seen[place] === sequence) this.#repeated += 1;
    this.#seen[place] = sequence;
    this.#received += 1;
    this.#highest = Math.max(this.#highest, sequence);
  }

  #confirmRestart(sequence: number): boolean {
    const isConfirmed = sequence === this.#confirming;
    this.#confirming = (sequence + 1) % sequences;
    if (!isConfirmed) return false;
    this.#closed = { expected: this.expected, received: this.received };
    // The packet before this one was the first.
    this.#start((sequence - 1 + sequences) % sequences);
    this.#receive(this.#highest + 1);
    return true;
  }

  #start(sequence: number): void {
    this.#isStarted = true;
    this.#confirming = undefined;
    this.#first = sequence;
    this.#highest = sequence;
    this.#received = 0;
    this.#repeated = 0;
    this.#seen.fill(Number.NaN);
    this.#receive(sequence);
    this.#expectedBefore = 0;
    this.#receivedBefore = 0;
    this.#arrivedMs = undefined;
  }

  #measure(differenceMs: number): void {
    // A pause of the sender's clock, e.g. music on hold, isn't jitter.
    if (Math.abs(differenceMs) > 1_000) return;
    this.#jitter += (Math.abs(differenceMs) * unitsPerMs - this.#jitter) / jitterGain;
    this.#jitterSum += this.#jitter;
    this.#jitterCount += 1;
  }

  /** Makes the next report. */
  report(): ReceptionReport {
    const expected = this.#expectedNow - this.#expectedBefore;
    const lost = expected - (this.#received - this.#receivedBefore);
    this.#expectedBefore = this.#expectedNow;
    this.#receivedBefore = this.#received;
    return {
      fractionLost:
        expected <= 0 || lost <= 0 ? 0 : Math.min(255, Math.floor((lost * 256) / expected)),
      packetsLost: this.#expectedNow - this.#received,
      highestSequence: this.#highest >>> 0,
      jitter: Math.floor(this.#jitter),
    };
  }
}

/**
 * Estimates when a packet arrived, so that our own sleep doesn't count as its jitter: in time, if
 * it may have been, or else in the middle. The jitter is then at most half of the sleep off,
 * whereas the time of reading would make a perfect line look as irregular as our sleep.
 */
function arrivalOf({ sinceMs, untilMs }: Arrival, expectedMs: number): number {
  const mayBeInTime = sinceMs <= expectedMs && expectedMs <= untilMs;
  return mayBeInTime ? expectedMs : (sinceMs + untilMs) / 2;
}
