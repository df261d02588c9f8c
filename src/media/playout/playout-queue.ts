// The bot's audio that hasn't been played yet, as µ-law in order of arrival, with marks in between.
// We read it 20 ms at a time, without allocating memory for each frame. Each mark has a position in
// the audio, and is returned to the bot once everything before that position has been played. Every
// mark is returned exactly once and in order, even if audio was split, cleared or dropped.

import { type BlockHolder, blockBytes, type PlayoutPool } from './playout-pool.ts';

/** Ten minutes of audio. Bots send a whole answer in one go, but no answer is that long. */
export const maxQueuedBytes = 600 * blockBytes;
/**
 * This is enough for a mark every 60 ms over ten minutes. The busiest client we know of sets one
 * every 200 ms.
 */
const maxMarks = 10_000;
/** Limits the total length of the queued marks' names, so that they can't fill up memory. */
const maxMarkNameLength = 256 * 1_024;
/**
 * A gap of up to 200 ms counts as an underrun, i.e. the bot's audio arrived too late. If the gap is
 * longer, we assume that the bot intended a pause.
 */
const maxUnderrunFrames = 10;

type Mark = { readonly name: string; readonly position: number };

export type PlayoutStatistics = {
  bytesPlayed: number;
  bytesDropped: number;
  marksDropped: number;
  underruns: number;
};

export function createPlayoutStatistics(): PlayoutStatistics {
  return { bytesPlayed: 0, bytesDropped: 0, marksDropped: 0, underruns: 0 };
}

export class PlayoutQueue implements BlockHolder {
  readonly #pool: PlayoutPool;
  readonly #onMark: (name: string) => void;
  readonly #maxBytes: number;
  readonly #blocks: Uint8Array[] = [];
  /**
   * Offset of the next read in the first block. `#writeAt` is its counterpart in the last block.
   */
  #readAt = 0;
  #writeAt = blockBytes;
  /**
   * Bytes played and bytes queued since the queue was created. All positions refer to these counts.
   */
  #played = 0;
  #queued = 0;
  readonly #marks: Mark[] = [];
  #markNameLength = 0;
  #isMuted = false;
  /** Frames since we last played any audio. Undefined before the first audio and after a clear. */
  #dryFrames: number | undefined;
  readonly statistics = createPlayoutStatistics();
  readonly #total: PlayoutStatistics;

  /** `total` accumulates the statistics for all queues in the thread. */
  constructor(
    pool: PlayoutPool,
    onMark: (name: string) => void,
    total: PlayoutStatistics = createPlayoutStatistics(),
    maxBytes = maxQueuedBytes,
  ) {
    this.#pool = pool;
    this.#onMark = onMark;
    this.#total = total;
    this.#maxBytes = maxBytes;
  }

  get queuedBytes(): number {
    return this.#queued - this.#played;
  }

  /**
   * Position of the next byte to be queued. Sounds use it to remember their place in the bot's
   * audio.
   */
  get bytesWritten(): number {
    return this.#queued;
  }

  /** Position of the next byte to be played. */
  get bytesRead(): number {
    return this.#played;
  }

  get heldBlocks(): number {
    return this.#blocks.length;
  }

  /**
   * Mutes or unmutes the queue. Muting drops the queued audio, as well as any audio that arrives
   * before the queue is unmuted. Marks are then returned immediately.
   */
  mute(isMuted: boolean): void {
    this.#isMuted = isMuted;
    if (isMuted) this.clear();
  }

  /**
   * Copies `audio` into the queue.
   * @returns false if there wasn't enough room for all of it, so the rest was dropped
   */
  write(audio: Uint8Array): boolean {
    if (this.#isMuted) return true;
    let from = 0;
    while (from < audio.length) {
      const room = Math.min(this.#maxBytes - this.queuedBytes, audio.length - from);
      if (room <= 0 || !this.#hasRoomInLastBlock()) break;
      const count = Math.min(room, blockBytes - this.#writeAt);
      this.#blocks.at(-1)?.set(audio.subarray(from, from + count), this.#writeAt);
      this.#writeAt += count;
      this.#queued += count;
      from += count;
    }
    if (from < audio.length) this.#count('bytesDropped', audio.length - from);
    return from === audio.length;
  }

  /**
   * Sets a mark, which is returned once all audio queued before it has been played, or immediately
   * if the queue is empty.
   * @returns false if too many marks are queued, so this mark was dropped
   */
  mark(name: string): boolean {
    if (this.queuedBytes === 0) {
      this.returnMarks();
      this.#onMark(name);
      return true;
    }
    if (this.#marks.length >= maxMarks || this.#markNameLength + name.length > maxMarkNameLength) {
      this.#count('marksDropped', 1);
      return false;
    }
    this.#marks.push({ name, position: this.#queued });
    this.#markNameLength += name.length;
    return true;
  }

  /** Drops the queued audio and returns its marks. */
  clear(): void {
    this.#played = this.#queued;
    this.#dryFrames = undefined;
    this.#releaseBlocks();
    this.returnMarks();
  }

  /** Drops all marks without returning them, because the bot is gone. */
  forgetMarks(): void {
    this.#marks.length = 0;
    this.#markNameLength = 0;
  }

  /**
   * Copies up to `count` bytes into `packet`, beginning at `start`. Call `returnMarks` afterwards.
   * @returns the number of bytes copied
   */
  read(packet: Uint8Array, start: number, count: number): number {
    let done = 0;
    while (done < count && this.queuedBytes > 0)
      done += this.#readBlock(packet, start + done, count - done);
    if (done > 0) this.#count('bytesPlayed', done);
    this.#countUnderruns(done > 0);
    return done;
  }

  /**
   * Returns the marks whose audio has been played. Call this after you've sent the packet with that
   * audio.
   */
  returnMarks(): void {
    let count = 0;
    for (const { position } of this.#marks) {
      if (position > this.#played) break;
      count += 1;
    }
    if (count === 0) return;
    for (const { name } of this.#marks.splice(0, count)) {
      this.#markNameLength -= name.length;
      this.#onMark(name);
    }
  }

  /** Drops the newest queued block and hands its memory over so that another call can use it. */
  yieldNewestBlock(): Uint8Array {
    const block = this.#blocks.pop();
    if (block === undefined) throw new Error('cannot take a block from an empty queue');
    const first = this.#blocks.length === 0 ? this.#readAt : 0;
    const dropped = this.#writeAt - first;
    this.#queued -= dropped;
    this.#count('bytesDropped', dropped);
    this.#writeAt = blockBytes;
    if (this.#blocks.length === 0) this.#readAt = 0;
    this.#moveMarksBack();
    return block;
  }

  close(): void {
    this.forgetMarks();
    this.#played = this.#queued;
    this.#releaseBlocks();
    this.#pool.forget(this);
  }

  #hasRoomInLastBlock(): boolean {
    if (this.#writeAt < blockBytes) return true;
    const block = this.#pool.take(this);
    if (block === undefined) return false;
    this.#blocks.push(block);
    this.#writeAt = 0;
    return true;
  }

  #readBlock(packet: Uint8Array, start: number, wanted: number): number {
    const block = this.#blocks[0];
    if (block === undefined) throw new Error('audio is queued, but no block holds it');
    const end = this.#blocks.length === 1 ? this.#writeAt : blockBytes;
    const count = Math.min(wanted, end - this.#readAt);
    // With only 160 bytes, this loop is faster than creating a view.
    for (let index = 0; index < count; index += 1) {
      packet[start + index] = block[this.#readAt + index] as number;
    }
    this.#readAt += count;
    this.#played += count;
    if (this.queuedBytes === 0) this.#releaseBlocks();
    else if (this.#readAt === blockBytes) this.#releaseFirst();
    return count;
  }

  #releaseFirst(): void {
    const block = this.#blocks.shift();
    if (block !== undefined) this.#pool.release(block);
    this.#readAt = 0;
  }

  #releaseBlocks(): void {
    for (const block of this.#blocks) this.#pool.release(block);
    this.#blocks.length = 0;
    this.#readAt = 0;
    this.#writeAt = blockBytes;
  }

  /** Moves marks whose audio has been dropped to the end of the remaining audio. */
  #moveMarksBack(): void {
    for (let index = this.#marks.length - 1; index >= 0; index -= 1) {
      const mark = this.#marks[index];
      if (mark === undefined || mark.position <= this.#queued) return;
      this.#marks[index] = { name: mark.name, position: this.#queued };
    }
  }

  #countUnderruns(hasAudio: boolean): void {
    if (!hasAudio) {
      if (this.#dryFrames !== undefined) this.#dryFrames += 1;
      return;
    }
    const dry = this.#dryFrames ?? 0;
    if (dry > 0 && dry <= maxUnderrunFrames) this.#count('underruns', 1);
    this.#dryFrames = 0;
  }

  #count(what: keyof PlayoutStatistics, by: number): void {
    this.statistics[what] += by;
    this.#total[what] += by;
  }
}
