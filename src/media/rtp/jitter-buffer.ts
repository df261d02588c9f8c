// Puts received G.711 back on a steady 20 ms clock. One sample is one timestamp unit, so the buffer
// is simply a ring of samples addressed by RTP timestamp, and reordering, duplicates and packet
// sizes need no special cases. If audio hasn't arrived by the time we need to play it, we play
// silence instead. There are no sockets or clocks in here: the owner calls `take` every 20 ms.

import { sequenceDistance, timestampDistance } from './rtp-packet.ts';

export const frameSamples = 160;

/**
 * The ring stores 512 ms in 8 kB, which is longer than the maximum delay. The capacity is a power
 * of two, so the ring stays aligned when the timestamp wraps.
 */
const capacitySamples = 4096;
const slotMask = capacitySamples - 1;
const granuleShift = 3;
const samplesPerGranule = 1 << granuleShift;
const granuleMask = capacitySamples / samplesPerGranule - 1;
/**
 * The first packet is delayed by two frames, which covers the reordering and jitter of ordinary
 * carrier routes.
 */
const targetDelaySamples = 2 * frameSamples;
/**
 * If the delay exceeds 300 ms, we skip the oldest audio, because delaying everything after it would
 * be worse.
 */
const maxDelaySamples = 2_400;
/**
 * A timestamp that's off by more than a second isn't caused by jitter. The sender must have reset
 * its clock.
 */
const jumpSamples = 8_000;
/** Networks don't reorder packets this far, so the sender must have restarted its sequence. */
const maxReorderedPackets = 100;
/** If the delay has been longer than necessary for 1 s, we shorten it by one frame. */
const shrinkWindowFrames = 50;
/** We wait up to 2 s for a pause in the speech, and then skip a frame anyway. */
const maxSkipWaitFrames = 100;
/** A frame counts as a pause if its peak doesn't exceed this, which is about -44 dBFS. */
const quietPeak = 200;

/** The minimum delay recorded for a window in which no packet arrived. */
const unmeasured = 2 ** 31;

export type JitterStatistics = { late: number; duplicates: number; skippedFrames: number };

export function createJitterStatistics(): JitterStatistics {
  return { late: 0, duplicates: 0, skippedFrames: 0 };
}

export class JitterBuffer {
  readonly #samples = new Int16Array(capacitySamples);
  /** 1 for each granule of 8 samples in which audio was received. */
  readonly #received = new Uint8Array(capacitySamples / samplesPerGranule);
  readonly statistics: JitterStatistics;
  /** Timestamp of the next sample to play. Valid only if `#started`. */
  #playTimestamp = 0;
  #started = false;
  #highestSequence = 0;
  /**
   * The timestamp that would confirm a jump if the next packet carries it. Undefined unless the
   * last packet jumped.
   */
  #jumpTimestamp: number | undefined;
  #windowFrames = 0;
  #windowMinDelay = unmeasured;
  #skipDue = false;
  #skipWaitFrames = 0;

  /** Several buffers may share one `statistics` object. Default: this buffer's own. */
  constructor(statistics = createJitterStatistics()) {
    this.statistics = statistics;
  }

  /** True once a packet has arrived. The first packet determines the delay for all later ones. */
  get isStarted(): boolean {
    return this.#started;
  }

  /**
   * Stores the audio in `packet[start..end)`. `decode` maps each code word to its linear sample.
   */
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
    if (!this.#admit(sequence, timestamp, length)) return;
    const offset = timestampDistance(timestamp, this.#playTimestamp);
    const skip = offset < 0 ? -offset : 0;
    const samples = this.#samples;
    for (let index = skip; index < length; index += 1) {
      const slot = (timestamp + index) & slotMask;
      samples[slot] = decode[packet[start + index] as number] as number;
    }
    this.#mark(timestamp + skip, length - skip, 1);
  }

  /**
   * Copies the next 20 ms into `frame` and fills in silence for missing samples.
   * @returns false if less than half of the frame was received
   */
  take(frame: Int16Array): boolean {
    if (!this.#started) {
      frame.fill(0);
      return false;
    }
    let isReceived = this.#copy(frame);
    if (this.#shouldSkip(frame, isReceived)) {
      this.#advance(frameSamples);
      this.statistics.skippedFrames += 1;
      isReceived = this.#copy(frame);
    }
    this.#advance(frameSamples);
    this.#checkDelay();
    return isReceived;
  }

  /** Drops all audio and starts over with the next packet. */
  reset(): void {
    this.#samples.fill(0);
    this.#received.fill(0);
    this.#started = false;
    this.#jumpTimestamp = undefined;
    this.#skipDue = false;
    this.#restartWindow();
  }

  /** Decides whether to play a packet. Moves the play position if necessary. */
  #admit(sequence: number, timestamp: number, length: number): boolean {
    if (!this.#started) {
      this.#startAt(sequence, timestamp);
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
    if (delay < 0) return this.#admitLate(isNew, timestamp, delay, length);
    if (isNew && delay < this.#windowMinDelay) this.#windowMinDelay = delay;
    const excess = delay - maxDelaySamples;
    if (excess > 0) this.#advance(excess);
    return true;
  }

  /**
   * Handles a packet that is at least partly too late. If a newer packet has already arrived, this
   * one is a straggler, and we play only the part that is still in time. Otherwise either the
   * network path has become longer, or the sender stopped its timestamps during a pause. In both of
   * these cases, playout continues from this packet, and the delay grows accordingly.
   */
  #admitLate(isNew: boolean, timestamp: number, delay: number, length: number): boolean {
    if (isNew) {
      this.#playTimestamp = timestamp;
      this.#restartWindow();
      return true;
    }
    this.statistics.late += 1;
    return delay + length > 0;
  }

  /**
   * Applies the rule from RFC 3550, appendix A.1, to timestamps: two packets in a row confirm a
   * jump, but a single stray packet doesn't.
   */
  #confirmJump(sequence: number, timestamp: number, length: number): boolean {
    const expected = this.#jumpTimestamp;
    this.#jumpTimestamp = (timestamp + length) >>> 0;
    if (expected === undefined) return false;
    if (Math.abs(timestampDistance(timestamp, expected)) > jumpSamples) return false;
    this.reset();
    this.#startAt(sequence, timestamp);
    return true;
  }

  #startAt(sequence: number, timestamp: number): void {
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

  /**
   * Moves the play position forward. Clears the samples behind it, because the ring reuses their
   * memory.
   */
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

  /** Marks every granule that the given samples touch. */
  #mark(timestamp: number, count: number, value: 0 | 1): void {
    if (count <= 0) return;
    const received = this.#received;
    const first = (timestamp & slotMask) >> granuleShift;
    const granules = (((timestamp & (samplesPerGranule - 1)) + count - 1) >> granuleShift) + 1;
    for (let index = 0; index < granules; index += 1) {
      received[(first + index) & granuleMask] = value;
    }
  }

  /**
   * Checks whether the delay has become longer than necessary, which happens after a stall, or if
   * the sender's clock is faster than ours.
   */
  #checkDelay(): void {
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

  #shouldSkip(frame: Int16Array, isReceived: boolean): boolean {
    if (!this.#skipDue) return false;
    this.#skipWaitFrames += 1;
    if (isReceived && this.#skipWaitFrames < maxSkipWaitFrames && !isQuiet(frame)) return false;
    this.#skipDue = false;
    this.#skipWaitFrames = 0;
    // The delays we measured before the skip are now one frame too long, so start over.
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
