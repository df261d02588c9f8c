// Counts the packets of one sender, as RFC 3550 describes (sections 6.4.1, A.1, A.3 and A.8): what
// was sent, judging by the sequence numbers, what arrived, and how irregularly.

import { sequenceDistance, timestampDistance } from '../rtp/rtp-packet.ts';

const sequences = 0x1_0000;
/** A gap of this many packets, a minute of audio, isn't loss: the sender has started over. */
const maxDropout = 3_000;
/** A packet that is two seconds old isn't late: the sender has started over. */
const maxMisorder = 100;
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

export class ReceptionStatistics {
  readonly ssrc: number;
  #isStarted = false;
  #first = 0;
  #highest = 0;
  #received = 0;
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

  /** Packets that arrived, each once. Late duplicates can't be told from late packets. */
  get received(): number {
    return this.#closed.received + Math.min(this.#received, this.#expectedNow);
  }

  /** Mean of the jitter estimate, in milliseconds. */
  get meanJitterMs(): number {
    return this.#jitterCount === 0 ? 0 : this.#jitterSum / this.#jitterCount / unitsPerMs;
  }

  get #expectedNow(): number {
    return this.#isStarted ? this.#highest - this.#first + 1 : 0;
  }

  /** @param isAudio false for a key press, all packets of which have the same timestamp */
  note(sequence: number, timestamp: number, isAudio: boolean, nowMs: number): void {
    if (!this.#count(sequence) || !isAudio) return;
    const elapsed = timestampDistance(timestamp, this.#lastTimestamp) / unitsPerMs;
    this.#lastTimestamp = timestamp;
    if (this.#arrivedMs !== undefined) this.#measure(nowMs - this.#arrivedMs - elapsed);
    this.#arrivedMs = nowMs;
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
    this.#received += 1;
    if (ahead > 0) this.#highest += ahead;
    return true;
  }

  #confirmRestart(sequence: number): boolean {
    const isConfirmed = sequence === this.#confirming;
    this.#confirming = (sequence + 1) % sequences;
    if (!isConfirmed) return false;
    this.#closed = { expected: this.expected, received: this.received };
    // The packet before this one was the first.
    this.#start((sequence - 1 + sequences) % sequences);
    this.#highest += 1;
    this.#received += 1;
    return true;
  }

  #start(sequence: number): void {
    this.#isStarted = true;
    this.#confirming = undefined;
    this.#first = sequence;
    this.#highest = sequence;
    this.#received = 1;
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
