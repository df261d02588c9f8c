// What a call still has to play: µ-law in the order in which it came, with marks between. Read 20 ms at a time, without an
// allocation for a frame. A mark stands at a position in the audio, so that however the audio is cut, cleared or dropped, each
// mark comes back once, in order, when nothing before it is left to play.

import { type BlockHolder, blockBytes, type PlayoutPool } from './playout-pool.ts';

/** Bots hand over a whole answer at once: ten minutes are more than any of them says in one breath. */
export const maxQueuedBytes = 600 * blockBytes;
/** Ten minutes of audio with a mark every 60 ms; one peer sets one after every 200 ms. */
const maxMarks = 10_000;
/** Their names together: what is queued is bounded in memory as well as in number. */
const maxMarkNameLength = 256 * 1_024;
/** A pause shorter than 200 ms was not meant: the bot's audio came too late. A longer one ends what was said. */
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
  /** In the first block, where what comes next begins; in the last one, where what is written next goes. */
  #readAt = 0;
  #writeAt = blockBytes;
  /** Positions: bytes since the call began, of what was played and of what was queued. */
  #played = 0;
  #queued = 0;
  readonly #marks: Mark[] = [];
  #markNameLength = 0;
  #isMuted = false;
  /** Since audio was played last; undefined: none was yet, or it was cleared. */
  #dryFrames: number | undefined;
  readonly statistics = createPlayoutStatistics();
  readonly #all: PlayoutStatistics;

  /** `all`: counts those of every queue of the thread. */
  constructor(
    pool: PlayoutPool,
    onMark: (name: string) => void,
    all: PlayoutStatistics = createPlayoutStatistics(),
    maxBytes = maxQueuedBytes,
  ) {
    this.#pool = pool;
    this.#onMark = onMark;
    this.#all = all;
    this.#maxBytes = maxBytes;
  }

  get queuedBytes(): number {
    return this.#queued - this.#played;
  }

  /** Positions, for what is to come in their order: of what is queued next, and of what is played next. */
  get bytesWritten(): number {
    return this.#queued;
  }

  get bytesPassed(): number {
    return this.#played;
  }

  get heldBlocks(): number {
    return this.#blocks.length;
  }

  /** What is queued is dropped, and what comes while it is muted; marks come back at once. */
  mute(isMuted: boolean): void {
    this.#isMuted = isMuted;
    if (isMuted) this.clear();
  }

  /** Copies. What there is no room for is dropped, the newest first; false then. */
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

  /** Comes back when all that is queued now was played; at once where nothing is. False: there are too many. */
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

  /** Nothing of what is queued is played; its marks come back. */
  clear(): void {
    this.#played = this.#queued;
    this.#dryFrames = undefined;
    this.#releaseBlocks();
    this.returnMarks();
  }

  /** Marks of a bot that is not there any more. */
  forgetMarks(): void {
    this.#marks.length = 0;
    this.#markNameLength = 0;
  }

  /** The next bytes, at most `count`, into `packet` from `start` on; how many there were. Marks come back by `returnMarks`. */
  read(packet: Uint8Array, start: number, count: number): number {
    let done = 0;
    while (done < count && this.queuedBytes > 0)
      done += this.#readBlock(packet, start + done, count - done);
    if (done > 0) this.#count('bytesPlayed', done);
    this.#watchDryness(done > 0);
    return done;
  }

  /** Those whose audio was played: asked after the packet that carried it was sent. */
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

  /** Of another call: the newest second that is queued here. */
  yieldNewestBlock(): Uint8Array {
    const block = this.#blocks.pop();
    if (block === undefined) throw new Error('a queue without audio was asked to give some up');
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
    if (block === undefined) throw new Error('audio is queued, and no block has it');
    const end = this.#blocks.length === 1 ? this.#writeAt : blockBytes;
    const count = Math.min(wanted, end - this.#readAt);
    // Byte by byte: at 160 bytes it is faster than a view of the block would be made.
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

  /** The audio before them is gone: they come back with the last that is left. */
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
    this.#all[what] += by;
  }
}
