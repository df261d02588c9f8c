// The memory in which a media worker's recordings travel to the recording thread, and back when
// it's written. Blocks are used again, because a new array for each second of each call would cost
// more than everything else: the memory must be cleared, and V8 collects garbage more often.

import { type PostedAudio, recordHeaderBytes, recordTailBytes } from '../recording-messages.ts';

/** Room for a second of 16 calls. */
export const blockBytes = 256 * 1024;
/** Blocks that are kept for later. More of them are in use only after the disk was slow. */
const maxFreeBlocks = 16;

export class AudioBlocks {
  readonly #free: Uint8Array<ArrayBuffer>[] = [];
  /** The blocks that have been filled since the last `take`. Audio is added to the last one. */
  #filled: Uint8Array<ArrayBuffer>[] = [];
  #used = blockBytes;

  /** What these blocks would have in memory if this audio were added to them. */
  bytesWith(audio: Uint8Array): number {
    return (this.#filled.length + (this.#fits(audio) ? 0 : 1)) * blockBytes;
  }

  get bytes(): number {
    return this.#filled.length * blockBytes;
  }

  /** Copies audio that is shorter than a block, and leaves room for the rest of its record. */
  add(at: number, audio: Uint8Array): PostedAudio {
    if (!this.#fits(audio)) {
      this.#filled.push(this.#free.pop() ?? new Uint8Array(blockBytes));
      this.#used = 0;
    }
    const block = this.#filled.length - 1;
    const start = this.#used;
    this.#filled[block]?.set(audio, start + recordHeaderBytes);
    this.#used += recordHeaderBytes + audio.length + recordTailBytes;
    return { kind: 'audio', at, block, start, bytes: audio.length };
  }

  #fits(audio: Uint8Array): boolean {
    return this.#used + recordHeaderBytes + audio.length + recordTailBytes <= blockBytes;
  }

  /** Returns the blocks for a message, which don't belong to us until they're given back. */
  take(): readonly Uint8Array<ArrayBuffer>[] {
    const taken = this.#filled;
    this.#filled = [];
    this.#used = blockBytes;
    return taken;
  }

  giveBack(blocks: readonly Uint8Array<ArrayBuffer>[]): void {
    for (const block of blocks) if (this.#free.length < maxFreeBlocks) this.#free.push(block);
  }
}
