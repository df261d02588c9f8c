// Puts received G.711 back on a steady clock of 20 ms. One sample is one timestamp unit, so the
// buffer is a ring of samples addressed by RTP timestamp. Order, duplicates and packet sizes then
// need no special care, and whatever is missing when its time comes is silence. The buffer has no
// sockets or clocks: its owner calls `take` once every 20 ms.

import { sequenceDistance, timestampDistance } from './rtp-packet.ts';

export const frameSamples = 160;

/**
 * 512 ms in 8 kB. The longest delay is 300 ms. A power of two, so that the ring survives the wrap
 * of the timestamp.
 */
const capacitySamples = 4096;
const slotMask = capacitySamples - 1;
const granuleShift = 3;
const samplesPerGranule = 1 << granuleShift;
const granuleMask = capacitySamples / samplesPerGranule - 1;
/**
 * How long the first packet is held: two frames, which covers the reordering and jitter of ordinary
 * carrier routes.
 */
const targetDelaySamples = 2 * frameSamples;
/**
 * The longest delay: 300 ms. Beyond it, the oldest audio is skipped, because hearing all later
 * audio so late would be worse.
 */
const maxDelaySamples = 2_400;
/** A timestamp more than a second off is not jitter: the sender set its clock anew. */
const jumpSamples = 8_000;
/** Further apart than reordering can be: the sender restarted its sequence. */
const maxReorderedPackets = 100;
/**
 * 1 s: how long the delay must have been longer than needed before it is shortened by one frame.
 */
const shrinkWindowFrames = 50;
/** Shortening waits this many frames for a pause in the speech. Then it skips speech. */
const maxSkipWaitFrames = 100;
/** Highest sample of a pause: about -44 dBFS. */
const quietPeak = 200;

/** Minimum delay of a window without packets: it means nothing. */
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
  /** Timestamp of the next sample to play. Valid only if `#started`. */
  #playTimestamp = 0;
  #started = false;
  #highestSequence = 0;
  /** The timestamp that would confirm a jump. Undefined unless a first packet has jumped. */
  #jumpTimestamp: number | undefined;
  #windowFrames = 0;
  #windowMinDelay = unmeasured;
  #skipDue = false;
  #skipWaitFrames = 0;

  /** `statistics` may be shared between buffers. Default: this buffer's own. */
  constructor(statistics = createJitterStatistics()) {
    this.statistics = statistics;
  }

  /**
   * Whether a packet has come. The arrival of the first one determines how long later ones are
   * held.
   */
  get isStarted(): boolean {
    return this.#started;
  }

  /** Stores the audio in `packet[start..end)`. `decode` has the linear sample of each code word. */
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

  /**
   * Copies the next 20 ms into `frame`. Missing samples are silence.
   * @returns false if less than half of it was received
   */
  take(frame: Int16Array): boolean {
    if (!this.#started) {
      frame.fill(0);
      return false;
    }
    let present = this.#copy(frame);
    if (this.#shouldSkip(frame, present)) {
      this.#advance(frameSamples);
      this.statistics.skippedFrames += 1;
      present = this.#copy(frame);
    }
    this.#advance(frameSamples);
    this.#watchDelay();
    return present;
  }

  /** Forgets everything, because the sender changed or what was heard came before the answer. */
  reset(): void {
    this.#samples.fill(0);
    this.#received.fill(0);
    this.#started = false;
    this.#jumpTimestamp = undefined;
    this.#skipDue = false;
    this.#restartWindow();
  }

  /** Decides whether a packet is played, and moves the play position if necessary. */
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
   * Handles a packet of which at least a part is too late. If it is a straggler, only the part that
   * is still in time is played. But if no newer packet came before it, the path became longer, or
   * the sender stopped its timestamp in a pause. Playing then continues from this packet, and the
   * delay grows by the part that was missing.
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

  /**
   * Applies the rule of RFC 3550, appendix A.1, to timestamps: one stray packet changes nothing,
   * two in a row do.
   */
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

  /**
   * Moves the play position forward. It leaves silence behind, for samples that reuse these places
   * of the ring.
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

  /** Marks every granule that these samples touch. */
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
   * Measures the delay. It becomes longer than needed if the sender's clock is faster than ours,
   * and after a stall.
   */
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

  #shouldSkip(frame: Int16Array, present: boolean): boolean {
    if (!this.#skipDue) return false;
    this.#skipWaitFrames += 1;
    if (present && this.#skipWaitFrames < maxSkipWaitFrames && !isQuiet(frame)) return false;
    this.#skipDue = false;
    this.#skipWaitFrames = 0;
    // A delay measured before the skip is one frame too long.
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
