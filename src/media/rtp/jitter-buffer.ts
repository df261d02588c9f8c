// Puts received G.711 back on a steady 20 ms clock. One sample is one timestamp unit, so the buffer is a ring of samples
// addressed by RTP timestamp: order, duplicates and any packet size take care of themselves, and what is missing when
// its time comes is silence. Knows neither sockets nor clocks: `take` is called once every 20 ms.

import { sequenceDistance, timestampDistance } from './rtp-packet.ts';

export const frameSamples = 160;

/** 512 ms: twice what the delay may grow to, in 8 kB. A power of two, so that the ring survives the timestamp's wrap. */
const capacitySamples = 4096;
const slotMask = capacitySamples - 1;
const granuleShift = 3;
const samplesPerGranule = 1 << granuleShift;
const granuleMask = capacitySamples / samplesPerGranule - 1;
/** How long the first packet is held: two frames, the reordering and jitter seen on ordinary carrier routes. */
const targetDelaySamples = 2 * frameSamples;
/** A longer delay says less about the present than it saves of the past: the oldest audio is skipped. */
const maxDelaySamples = 2_400;
/** More than a second off is no jitter: the sender set its clock anew. */
const jumpSamples = 8_000;
/** Further apart than any reordering: the sender restarted its sequence. */
const maxReorderedPackets = 100;
/** 1 s: how long the delay must have been longer than needed before it is shortened by a frame. */
const shrinkWindowFrames = 50;
/** Shortening waits this long for a pause in the speech, then does without. */
const maxSkipWaitFrames = 100;
/** Peak of what passes for a pause: about -44 dBFS. */
const quietPeak = 200;

/** No packet in the window: its minimum says nothing. */
const unmeasured = 2 ** 31;

export type JitterStatistics = { late: number; duplicates: number; skippedFrames: number };

export function createJitterStatistics(): JitterStatistics {
  return { late: 0, duplicates: 0, skippedFrames: 0 };
}

export class JitterBuffer {
  readonly #samples = new Int16Array(capacitySamples);
  /** 1 where a granule of 8 samples was received. */
  readonly #received = new Uint8Array(capacitySamples / samplesPerGranule);
  readonly statistics: JitterStatistics;
  /** Timestamp of the next sample to play; meaningful once `#started`. */
  #playTimestamp = 0;
  #started = false;
  #highestSequence = 0;
  /** Where a jump would go on, while a second packet has not confirmed it. */
  #jumpTimestamp: number | undefined;
  #windowFrames = 0;
  #windowMinDelay = unmeasured;
  #skipDue = false;
  #skipWaitFrames = 0;

  /** `statistics`: of this one alone, unless it is given those of many. */
  constructor(statistics = createJitterStatistics()) {
    this.statistics = statistics;
  }

  /** Whether a packet has come. The time of the first one settles how long later ones are held. */
  get isStarted(): boolean {
    return this.#started;
  }

  /** `decode`: linear sample of each code word. `packet[start..end)` is the audio. */
  put(
    packet: Uint8Array,
    start: number,
    end: number,
    sequence: number,
    timestamp: number,
    decode: Int16Array,
  ): void {
    const length = end - start;
    if (length <= 0 || length > maxDelaySamples) return;
    if (!this.#place(sequence, timestamp, length)) return;
    const offset = timestampDistance(timestamp, this.#playTimestamp);
    const skip = offset < 0 ? -offset : 0;
    const samples = this.#samples;
    for (let index = skip; index < length; index += 1) {
      const slot = (timestamp + index) & slotMask;
      samples[slot] = decode[packet[start + index] as number] as number;
    }
    this.#mark(timestamp + skip, length - skip, 1);
  }

  /** The next 20 ms into `frame`. False: less than half of it was received, the rest is silence. */
  take(frame: Int16Array): boolean {
    if (!this.#started) {
      frame.fill(0);
      return false;
    }
    let present = this.#copy(frame);
    if (this.#shallSkip(frame, present)) {
      this.#advance(frameSamples);
      this.statistics.skippedFrames += 1;
      present = this.#copy(frame);
    }
    this.#advance(frameSamples);
    this.#watchDelay();
    return present;
  }

  /** Forgets everything: another sender, or what was heard before the answer. */
  reset(): void {
    this.#samples.fill(0);
    this.#received.fill(0);
    this.#started = false;
    this.#jumpTimestamp = undefined;
    this.#skipDue = false;
    this.#restartWindow();
  }

  /** Decides whether a packet is played, and moves the play position where it must. */
  #place(sequence: number, timestamp: number, length: number): boolean {
    if (!this.#started) {
      this.#anchor(sequence, timestamp);
      return true;
    }
    const ahead = sequenceDistance(sequence, this.#highestSequence);
    const isNew = ahead > 0 || ahead < -maxReorderedPackets;
    if (ahead === 0) this.statistics.duplicates += 1;
    const delay = timestampDistance(timestamp, this.#playTimestamp);
    if (delay > jumpSamples || (isNew && delay < -jumpSamples)) {
      return this.#confirmJump(sequence, timestamp, length);
    }
    this.#jumpTimestamp = undefined;
    if (isNew) this.#highestSequence = sequence;
    if (delay < 0) return this.#placeLate(isNew, timestamp, delay, length);
    if (isNew && delay < this.#windowMinDelay) this.#windowMinDelay = delay;
    const excess = delay - maxDelaySamples;
    if (excess > 0) this.#advance(excess);
    return true;
  }

  /**
   * Too late to be whole. A straggler is dropped; but when nothing newer came before it, the path became longer (or the
   * sender stopped its timestamp in a pause): play from here, the delay grows by what was missing.
   */
  #placeLate(isNew: boolean, timestamp: number, delay: number, length: number): boolean {
    if (isNew) {
      this.#playTimestamp = timestamp;
      this.#restartWindow();
      return true;
    }
    this.statistics.late += 1;
    return delay + length > 0;
  }

  /** RFC 3550 A.1's rule for sequence numbers, for timestamps: one stray packet changes nothing, two in a row do. */
  #confirmJump(sequence: number, timestamp: number, length: number): boolean {
    const expected = this.#jumpTimestamp;
    this.#jumpTimestamp = (timestamp + length) >>> 0;
    if (expected === undefined) return false;
    if (Math.abs(timestampDistance(timestamp, expected)) > jumpSamples) return false;
    this.reset();
    this.#anchor(sequence, timestamp);
    return true;
  }

  #anchor(sequence: number, timestamp: number): void {
    this.#started = true;
    this.#highestSequence = sequence;
    this.#playTimestamp = (timestamp - targetDelaySamples) >>> 0;
  }

  #copy(frame: Int16Array): boolean {
    const samples = this.#samples;
    const received = this.#received;
    const start = this.#playTimestamp;
    let granules = 0;
    for (let index = 0; index < frameSamples; index += 1) {
      frame[index] = samples[(start + index) & slotMask] as number;
    }
    for (let index = 0; index < frameSamples; index += samplesPerGranule) {
      granules += received[((start + index) & slotMask) >> granuleShift] as number;
    }
    return granules * 2 * samplesPerGranule >= frameSamples;
  }

  /** Moves the play position on and leaves silence behind, for the samples that come round the ring. */
  #advance(count: number): void {
    const samples = this.#samples;
    const cleared = Math.min(count, capacitySamples);
    const from = this.#playTimestamp & slotMask;
    const unwrapped = Math.min(cleared, capacitySamples - from);
    samples.fill(0, from, from + unwrapped);
    samples.fill(0, 0, cleared - unwrapped);
    this.#mark(this.#playTimestamp, cleared, 0);
    this.#playTimestamp = (this.#playTimestamp + count) >>> 0;
  }

  /** Every granule that these samples touch. */
  #mark(timestamp: number, count: number, value: 0 | 1): void {
    if (count <= 0) return;
    const received = this.#received;
    const first = (timestamp & slotMask) >> granuleShift;
    const granules = (((timestamp & (samplesPerGranule - 1)) + count - 1) >> granuleShift) + 1;
    for (let index = 0; index < granules; index += 1) {
      received[(first + index) & granuleMask] = value;
    }
  }

  /** A sender's clock that is faster than ours, or a stall that is over, leaves a delay longer than needed. */
  #watchDelay(): void {
    this.#windowFrames += 1;
    if (this.#windowFrames < shrinkWindowFrames) return;
    const measured = this.#windowMinDelay < unmeasured;
    if (measured && this.#windowMinDelay > targetDelaySamples + frameSamples) this.#skipDue = true;
    this.#restartWindow();
  }

  #restartWindow(): void {
    this.#windowFrames = 0;
    this.#windowMinDelay = unmeasured;
  }

  #shallSkip(frame: Int16Array, present: boolean): boolean {
    if (!this.#skipDue) return false;
    this.#skipWaitFrames += 1;
    if (present && this.#skipWaitFrames < maxSkipWaitFrames && !isQuiet(frame)) return false;
    this.#skipDue = false;
    this.#skipWaitFrames = 0;
    // What was measured before the skip is a frame too long.
    this.#restartWindow();
    return true;
  }
}

function isQuiet(frame: Int16Array): boolean {
  for (let index = 0; index < frameSamples; index += 1) {
    if (Math.abs(frame[index] as number) > quietPeak) return false;
  }
  return true;
}
