// Memory for the audio that a worker's bots have queued. It's split into one-second blocks, and all
// calls share a limit. If no block is free, a stream may take over the newest block of the stream
// that has queued the most, provided that the other stream has at least two blocks more.

/** One second of G.711. */
export const blockBytes = 8_000;
/** We keep this many free blocks for reuse, and leave the rest to the garbage collector. */
const maxIdleBlocks = 64;

export type BlockHolder = {
  readonly heldBlocks: number;
  /** Gives up the newest block and the audio in it. */
  yieldNewestBlock(): Uint8Array;
};

export class PlayoutPool {
  readonly #maxBlocks: number;
  readonly #holders = new Set<BlockHolder>();
  readonly #idle: Uint8Array[] = [];
  #heldBlocks = 0;

  constructor(maxBytes: number) {
    this.#maxBlocks = Math.max(1, Math.floor(maxBytes / blockBytes));
  }

  get heldBytes(): number {
    return this.#heldBlocks * blockBytes;
  }

  /**
   * Takes a block for `holder`.
   * @returns undefined if all blocks are in use and no stream has at least two more than `holder`
   */
  take(holder: BlockHolder): Uint8Array | undefined {
    this.#holders.add(holder);
    if (this.#heldBlocks < this.#maxBlocks) {
      this.#heldBlocks += 1;
      return this.#idle.pop() ?? new Uint8Array(blockBytes);
    }
    const greediest = this.#greediest();
    // A difference of just one block is fair enough: moving the block would only swap the two
    // streams.
    if (greediest === undefined || greediest.heldBlocks <= holder.heldBlocks + 1) return undefined;
    return greediest.yieldNewestBlock();
  }

  release(block: Uint8Array): void {
    this.#heldBlocks -= 1;
    if (this.#idle.length < maxIdleBlocks) this.#idle.push(block);
  }

  forget(holder: BlockHolder): void {
    this.#holders.delete(holder);
  }

  #greediest(): BlockHolder | undefined {
    let greediest: BlockHolder | undefined;
    for (const holder of this.#holders) {
      if (holder.heldBlocks > (greediest?.heldBlocks ?? 0)) greediest = holder;
    }
    return greediest;
  }
}
