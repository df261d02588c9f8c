// Puts received G.711 back on a steady 20 ms clock. One sample is one timestamp unit, so the buffer
// is simply a ring of samples addressed by RTP timestamp, and reordering, duplicates and packet
// sizes need no special cases. If audio hasn't arrived by the time we need to play it, we mark its
// samples, so that the owner can fill them. There are no sockets or clocks in here: the owner calls
// `take` every 20 ms.

import { type RtpHeader, sequenceDistance, timestampDistance } from './rtp-packet.ts';

export const frameSamples = 160;

/** Marks a sample that hasn't arrived. G.711 never decodes to this value. */
export const missingSample = -32_768;
/** Marks a sample that the far end didn't send, because it suppresses silence. */
export const pausedSample = -32_767;

/**
 * The ring grows up to 1,024 ms, which is room for the maximum delay and for a packet of 400 ms
 * after it. It begins with 128 ms, because that is all that most calls need, and the rings of
 * hundreds of calls then fit into a core's cache. The sizes are powers of two, so the ring stays
 * aligned when the timestamp wraps.
 */
const maxCapacitySamples = 8_192;
const firstCapacitySamples = 1_024;
/**
 * Longer packets are ignored. RFC 3551, section 4.2, expects receivers to accept up to 200 ms, and
 * some far ends send 260 ms.
 */
const maxPacketSamples = 3_200;
/**
 * The first packet is delayed by two frames, which covers the reordering and jitter of ordinary
 * carrier routes.
 */
const targetDelaySamples = 2 * frameSamples;
/**
 * If the delay exceeds 600 ms, we skip the oldest audio. Stalls of mobile networks are usually
 * shorter, so all that they hold up is played. After a longer one, the delay of everything that
 * follows would be worse than the cut: G.114 finds 400 ms unacceptable in a conversation.
 */
const maxDelaySamples = 4_800;
/**
 * A timestamp that's off by more than a second isn't caused by jitter. The sender must have reset
 * its clock.
 */
const jumpSamples = 8_000;
/** Networks don't reorder packets this far, so the sender must have restarted its sequence. */
const maxReorderedPackets = 100;
/** If the delay has been longer than necessary for 1 s, we skip frames until it's no longer. */
const shrinkWindowFrames = 50;
/** Before each skip we wait up to 1 s for a pause in the speech, and then skip a frame anyway. */
const maxSkipWaitFrames = 50;
/** A frame counts as a pause if its peak doesn't exceed this, which is about -44 dBFS. */
const quietPeak = 200;

/** The minimum delay recorded for a window in which no packet arrived. */
const unmeasured = 2 ** 31;

/** Counters shared by all buffers of a worker. */
export type JitterStatistics = { late: number; duplicates: number; skippedFrames: number };

export function createJitterStatistics(): JitterStatistics {
  return { late: 0, duplicates: 0, skippedFrames: 0 };
}

/** What one call's listeners didn't hear as it was sent. */
export type PlayoutCounts = {
  /** Samples that were lost or late, so that something else was heard in their place. */
  concealedSamples: number;
  /** Packets that arrived, but too late to be played, or that were skipped. May be fractional. */
  unplayedPackets: number;
  /** Samples that were skipped because too many had arrived at once. */
  skippedSamples: number;
};

export function createPlayoutCounts(): PlayoutCounts {
  return { concealedSamples: 0, unplayedPackets: 0, skippedSamples: 0 };
}

function emptyRing(samples: number): Int16Array {
  return new Int16Array(samples).fill(missingSample);
}

export class JitterBuffer {
  #samples = emptyRing(firstCapacitySamples);
  readonly statistics: JitterStatistics;
  readonly #counts: PlayoutCounts;
  /** Timestamp of the next sample to play. Valid only if `#started`. */
  #playTimestamp = 0;
  #started = false;
  #highestSequence = 0;
  /** Timestamp of the first sample after the newest audio packet, and that packet's length. */
  #endTimestamp = 0;
  #packetSamples = frameSamples;
  /** Packets missing between the newest audio packet and the newest packet of any kind. */
  #lostPackets = 0;
  /** Packets that haven't arrived although newer ones have. */
  #overduePackets = 0;
  /** Samples before the first packet that are still to be played as silence. */
  #leadSamples = 0;
  /** True if the far end has said that it suppresses silence from the newest audio packet on. */
  #isPaused = false;
  /**
   * Samples that were due after the newest audio packet. Only the next packet tells whether they
   * were lost, are late, or weren't sent.
   */
  #awaitedSamples = 0;
  #isWhole = false;
  /** The same two counts for the frame that's being taken. */
  readonly #inFrame = { lost: 0, awaited: 0 };
  /**
   * The timestamp that would confirm a jump if the next packet carries it. Undefined unless the
   * last packet jumped.
   */
  #jumpTimestamp: number | undefined;
  #windowFrames = 0;
  #windowMinDelay = unmeasured;
  #framesToSkip = 0;
  #skipWaitFrames = 0;

  /** Several buffers may share one object of each kind. Default: this buffer's own. */
  constructor(statistics = createJitterStatistics(), counts = createPlayoutCounts()) {
    this.statistics = statistics;
    this.#counts = counts;
  }

  /** True if the last frame that was taken has audio throughout. */
  get isWhole(): boolean {
    return this.#isWhole;
  }

  /** True if the last frame lacks more than half of its audio, and the far end sends audio. */
  get isMissing(): boolean {
    return 2 * (this.#inFrame.lost + this.#inFrame.awaited) > frameSamples;
  }

  /** Stores a packet's audio. `decode` maps each code word to its linear sample. */
  put(packet: Uint8Array, header: RtpHeader, decode: Int16Array): void {
    const { payloadStart, timestamp } = header;
    const length = header.payloadEnd - payloadStart;
    if (length <= 0 || length > maxPacketSamples) return;
    if (!this.#admit(header, length)) return;
    const offset = timestampDistance(timestamp, this.#playTimestamp);
    this.#makeRoom(offset + length);
    const samples = this.#samples;
    const slotMask = samples.length - 1;
    // A timestamp may be too large for V8's small integers, and a slot isn't.
    const first = timestamp & slotMask;
    for (let index = offset < 0 ? -offset : 0; index < length; index += 1) {
      const slot = (first + index) & slotMask;
      samples[slot] = decode[packet[payloadStart + index] as number] as number;
    }
  }

  /** Takes note of a packet without audio, e.g. of a key, so that it doesn't count as lost. */
  note(sequence: number): void {
    if (!this.#started) return;
    const ahead = sequenceDistance(sequence, this.#highestSequence);
    if (!isNewer(ahead)) return;
    this.#highestSequence = sequence;
    // If the sender has started over, its sequence numbers don't tell what was lost.
    if (ahead <= 0) return;
    this.#lostPackets += ahead - 1;
    this.#overduePackets += ahead - 1;
  }

  /**
   * Takes note of a comfort noise packet: what follows the newest audio is a pause, not a loss,
   * until the next audio packet.
   */
  pause({ sequence, timestamp }: RtpHeader): void {
    if (!this.#started) {
      this.#startAt(sequence, timestamp);
    } else {
      if (!isNewer(sequenceDistance(sequence, this.#highestSequence))) return;
      this.note(sequence);
      const delay = timestampDistance(timestamp, this.#playTimestamp);
      if (Math.abs(delay) > jumpSamples) return;
      const lost = this.#lostBefore(timestamp, this.#packetSamples);
      this.#counts.concealedSamples += Math.min(this.#awaitedSamples, lost);
      this.#endTimestamp = (this.#endTimestamp + lost) >>> 0;
    }
    this.#lostPackets = 0;
    this.#awaitedSamples = 0;
    this.#isPaused = true;
  }

  /**
   * Copies the next 20 ms into `frame`, with `missingSample` and `pausedSample` where there's no
   * audio.
   * @returns false if more than half of the frame is missing
   */
  take(frame: Int16Array): boolean {
    if (!this.#started) {
      this.#isWhole = false;
      frame.fill(missingSample);
      return false;
    }
    let isKnown = this.#copy(frame);
    if (this.#shouldSkip(frame, isKnown)) {
      this.#advance(frameSamples);
      this.statistics.skippedFrames += 1;
      isKnown = this.#copy(frame);
    }
    this.#counts.concealedSamples += this.#inFrame.lost;
    this.#awaitedSamples += this.#inFrame.awaited;
    this.#advance(frameSamples);
    this.#checkDelay();
    return isKnown;
  }

  /** Drops all audio and starts over with the next packet. */
  reset(): void {
    this.#samples.fill(missingSample);
    this.#started = false;
    this.#jumpTimestamp = undefined;
    this.#framesToSkip = 0;
    this.#restartWindow();
  }

  /** Decides whether to play a packet. Moves the play position if necessary. */
  #admit(header: RtpHeader, length: number): boolean {
    const { sequence, timestamp } = header;
    if (!this.#started) {
      this.#startAt(sequence, timestamp);
      this.#endAt(timestamp, length);
      return true;
    }
    const ahead = sequenceDistance(sequence, this.#highestSequence);
    const isNew = isNewer(ahead);
    if (ahead === 0) this.statistics.duplicates += 1;
    const delay = timestampDistance(timestamp, this.#playTimestamp);
    if (delay > jumpSamples || (isNew && delay < -jumpSamples)) {
      return this.#confirmJump(sequence, timestamp, length);
    }
    this.#jumpTimestamp = undefined;
    if (!isNew) return this.#admitStraggler(ahead, delay, length);
    this.note(sequence);
    const lost = this.#lostBefore(timestamp, length);
    this.#countGap(header, delay, lost);
    if (delay < 0) {
      // Either the network path has become longer, or the sender stopped its timestamps during a
      // pause. In both cases, playout continues from this packet, and the delay grows accordingly.
      this.#playTimestamp = timestamp;
      this.#leadSamples = 0;
      this.#framesToSkip = 0;
      this.#restartWindow();
    } else {
      if (delay < this.#windowMinDelay) this.#windowMinDelay = delay;
      this.#limitDelay(delay, length);
      this.#makeRoom(timestampDistance(timestamp, this.#playTimestamp));
      this.#markPause((this.#endTimestamp + lost) >>> 0, timestamp);
    }
    this.#endAt(timestamp, length);
    return true;
  }

  /**
   * Handles a packet that comes after a newer one. We play only the part that is still in time.
   */
  #admitStraggler(ahead: number, delay: number, length: number): boolean {
    // Duplicates come after newer packets, too, but nothing was overdue.
    const isOverdue = ahead < 0 && this.#overduePackets > 0;
    if (isOverdue) this.#overduePackets -= 1;
    if (delay >= 0) return delay + length <= maxCapacitySamples;
    this.statistics.late += 1;
    const isPlayable = delay + length > 0;
    if (isOverdue && !isPlayable) this.#counts.unplayedPackets += 1;
    return isPlayable;
  }

  /** Skips the oldest audio if a packet would be played too late, or doesn't fit into the ring. */
  #limitDelay(delay: number, length: number): void {
    const excess = Math.max(delay - maxDelaySamples, delay + length - maxCapacitySamples);
    if (excess <= 0) return;
    // The silence before the first packet is no loss.
    const skipped = Math.max(0, excess - this.#leadSamples);
    this.#counts.unplayedPackets += skipped / length;
    this.#counts.skippedSamples += skipped;
    this.#advance(excess);
  }

  /**
   * Returns how many of the samples between the newest audio and this timestamp were lost. A gap in
   * the timestamps without one in the sequence numbers is no loss: the far end suppresses silence
   * (RFC 3551, section 4.1).
   */
  #lostBefore(timestamp: number, packetSamples: number): number {
    const gap = timestampDistance(timestamp, this.#endTimestamp);
    if (gap <= 0) return 0;
    return Math.min(gap, this.#lostPackets * Math.max(packetSamples, this.#packetSamples));
  }

  /** Decides what the samples were for which we've waited in vain. */
  #countGap({ timestamp, marker }: RtpHeader, delay: number, lost: number): void {
    const awaited = this.#awaitedSamples;
    const isSuppressed = lost === 0 && timestampDistance(timestamp, this.#endTimestamp) > 0;
    // A marker begins a talk spurt (RFC 3551, section 4.1): the wait was a pause.
    const isLate = delay < 0 && !marker && !isSuppressed;
    const late = isLate ? Math.min(-delay, awaited) : 0;
    this.#counts.concealedSamples += Math.min(awaited, lost + late);
  }

  /** Marks the samples that the far end didn't send, from the play position on. */
  #markPause(from: number, until: number): void {
    const due = timestampDistance(this.#playTimestamp, from);
    const first = due > 0 ? this.#playTimestamp : from;
    const count = timestampDistance(until, first);
    if (count > 0) this.#fill(first, count, pausedSample);
  }

  #endAt(timestamp: number, length: number): void {
    this.#endTimestamp = (timestamp + length) >>> 0;
    this.#packetSamples = length;
    this.#lostPackets = 0;
    this.#awaitedSamples = 0;
    this.#isPaused = false;
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
    this.#endAt(timestamp, length);
    return true;
  }

  #startAt(sequence: number, timestamp: number): void {
    this.#started = true;
    this.#highestSequence = sequence;
    this.#playTimestamp = (timestamp - targetDelaySamples) >>> 0;
    this.#endTimestamp = timestamp;
    this.#leadSamples = targetDelaySamples;
    this.#overduePackets = 0;
  }

  #copy(frame: Int16Array): boolean {
    const samples = this.#samples;
    const slotMask = samples.length - 1;
    const start = this.#playTimestamp & slotMask;
    let absent = 0;
    for (let index = 0; index < frameSamples; index += 1) {
      const sample = samples[(start + index) & slotMask] as number;
      frame[index] = sample;
      if (sample <= pausedSample) absent += 1;
    }
    this.#inFrame.lost = 0;
    this.#inFrame.awaited = 0;
    this.#isWhole = absent === 0;
    return this.#isWhole || this.#explain(frame);
  }

  /** Tells missing samples that were sent from those of a pause, and from those still to come. */
  #explain(frame: Int16Array): boolean {
    const inFrame = this.#inFrame;
    const sentSamples = timestampDistance(this.#endTimestamp, this.#playTimestamp);
    for (let index = 0; index < frameSamples; index += 1) {
      if (frame[index] !== missingSample || index < this.#leadSamples) continue;
      if (index < sentSamples) inFrame.lost += 1;
      else if (this.#isPaused) frame[index] = pausedSample;
      else inFrame.awaited += 1;
    }
    const missing = this.#leadSamples > 0 ? frameSamples : inFrame.lost + inFrame.awaited;
    return missing * 2 <= frameSamples;
  }

  /**
   * Moves the play position forward. Clears the samples behind it, because the ring reuses their
   * memory.
   */
  #advance(count: number): void {
    this.#fill(this.#playTimestamp, Math.min(count, this.#samples.length), missingSample);
    this.#playTimestamp = (this.#playTimestamp + count) >>> 0;
    this.#leadSamples = Math.max(0, this.#leadSamples - count);
  }

  #fill(timestamp: number, count: number, value: number): void {
    const samples = this.#samples;
    const from = timestamp & (samples.length - 1);
    const unwrapped = Math.min(count, samples.length - from);
    samples.fill(value, from, from + unwrapped);
    if (unwrapped < count) samples.fill(value, 0, count - unwrapped);
  }

  /** Makes the ring large enough for this many samples from the play position on. */
  #makeRoom(neededSamples: number): void {
    const before = this.#samples;
    if (neededSamples <= before.length) return;
    let capacity = before.length;
    while (capacity < neededSamples) capacity *= 2;
    const after = emptyRing(capacity);
    for (let index = 0; index < before.length; index += 1) {
      const slot = (this.#playTimestamp + index) | 0;
      after[slot & (capacity - 1)] = before[slot & (before.length - 1)] as number;
    }
    this.#samples = after;
  }

  /**
   * Checks whether the delay has become longer than necessary, which happens after a stall, or if
   * the sender's clock is faster than ours.
   */
  #checkDelay(): void {
    // While we're skipping, the delay changes.
    if (this.#framesToSkip > 0) return;
    this.#windowFrames += 1;
    if (this.#windowFrames < shrinkWindowFrames) return;
    if (this.#windowMinDelay < unmeasured) {
      const excess = this.#windowMinDelay - targetDelaySamples - frameSamples;
      this.#framesToSkip = Math.max(0, Math.ceil(excess / frameSamples));
    }
    this.#restartWindow();
  }

  #restartWindow(): void {
    this.#windowFrames = 0;
    this.#windowMinDelay = unmeasured;
    this.#skipWaitFrames = 0;
  }

  #shouldSkip(frame: Int16Array, isKnown: boolean): boolean {
    if (this.#framesToSkip === 0) return false;
    this.#skipWaitFrames += 1;
    if (isKnown && this.#skipWaitFrames < maxSkipWaitFrames && !isQuiet(frame)) return false;
    this.#framesToSkip -= 1;
    // The delays we measured before the skip are now too long, so start over.
    this.#restartWindow();
    return true;
  }
}

/** Whether a packet that is this far ahead of the newest is new, or its sender started over. */
function isNewer(ahead: number): boolean {
  return ahead > 0 || ahead < -maxReorderedPackets;
}

function isQuiet(frame: Int16Array): boolean {
  for (let index = 0; index < frameSamples; index += 1) {
    const sample = frame[index] as number;
    if (Math.abs(sample) > quietPeak && sample > pausedSample) return false;
  }
  return true;
}
