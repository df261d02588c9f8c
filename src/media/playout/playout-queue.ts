// The audio that a call still has to play: µ-law in the order of its arrival, with marks in
// between. It is read 20 ms at a time without allocating memory for each frame. A mark has a
// position in the audio. However the audio is cut, cleared or dropped, each mark comes back once
// and in order, when nothing before it is left to play.

import { type BlockHolder, blockBytes, type PlayoutPool } from './playout-pool.ts';

/** Bots send a whole answer at once. Ten minutes are longer than any answer. */
export const maxQueuedBytes = 600 * blockBytes;
/**
 * Enough for a mark every 60 ms in ten minutes of audio. One known peer sets a mark every 200 ms.
 */
const maxMarks = 10_000;
/** Total length of the marks' names: queued marks are bounded in memory as well as in number. */
const maxMarkNameLength = 256 * 1_024;
/**
 * A pause up to 200 ms was not intended: the bot's audio came too late. A longer pause is the end
 * of what the bot said.
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
   * Where the next byte is read in the first block, and where the next byte is written in the last
   * block.
   */
  #readAt = 0;
  #writeAt = blockBytes;
  /**
   * Bytes that were played and bytes that were queued, both since the queue was made. Positions are
   * counts of these bytes.
   */
  #played = 0;
  #queued = 0;
  readonly #marks: Mark[] = [];
  #markNameLength = 0;
  #isMuted = false;
  /**
   * Frames without audio since the last audio. Undefined before the first audio and after a clear.
   */
  #dryFrames: number | undefined;
  readonly statistics = createPlayoutStatistics();
  readonly #total: PlayoutStatistics;

  /** `total` adds up the statistics of every queue of the thread. */
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
   * The position of what is queued next. Sounds use positions to keep their place in the bot's
   * audio.
   */
  get bytesWritten(): number {
    return this.#queued;
  }

  /** The position of what is played next. */
  get bytesPassed(): number {
    return this.#played;
  }

  get heldBlocks(): number {
    return this.#blocks.length;
  }

  /**
   * Mutes the queue, or unmutes it. Muting drops the queued audio and all audio that comes
   * meanwhile. Marks come back at once.
   */
  mute(isMuted: boolean): void {
    this.#isMuted = isMuted;
    if (isMuted) this.clear();
  }

  /**
   * Copies `audio` into the queue.
   * @returns false if some of it was dropped, the newest first, because there was no room
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
   * Sets a mark. It comes back when all audio that is queued now was played, and at once if the
   * queue is empty.
   * @returns false if there are too many marks
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

  /** Drops the queued audio. Its marks come back. */
  clear(): void {
    this.#played = this.#queued;
    this.#dryFrames = undefined;
    this.#releaseBlocks();
    this.returnMarks();
  }

  /** Drops the marks of a bot that is gone. */
  forgetMarks(): void {
    this.#marks.length = 0;
    this.#markNameLength = 0;
  }

  /**
   * Copies at most `count` of the next bytes into `packet` from `start` on. `returnMarks` returns
   * the marks that they reach.
   * @returns how many bytes there were
   */
  read(packet: Uint8Array, start: number, count: number): number {
    let done = 0;
    while (done < count && this.queuedBytes > 0)
      done += this.#readBlock(packet, start + done, count - done);
    if (done > 0) this.#count('bytesPlayed', done);
    this.#watchDryness(done > 0);
    return done;
  }

  /**
   * Returns the marks whose audio was played. To be called after the packet with that audio was
   * sent.
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

  /** Gives another call the newest second of audio that is queued here. */
  yieldNewestBlock(): Uint8Array {
    const block = this.#blocks.pop();
    if (block === undefined) throw new Error('an empty queue has no block to give up');
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
    // Copies byte by byte: for 160 bytes this is faster than making a view of the block.
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

  /** Moves marks whose audio was dropped: they come back after the last audio that is left. */
  #moveMarksBack(): void {
    for (let index = this.#marks.length - 1; index >= 0; index -= 1) {
      const mark = this.#marks[index];
      if (mark === undefined || mark.position <= this.#queued) return;
      this.#marks[index] = { name: mark.name, position: this.#queued };
    }
  }

  #watchDryness(hasAudio: boolean): void {
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
