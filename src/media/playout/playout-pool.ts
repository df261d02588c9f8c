// Where a worker's bots may keep audio that is still to be played: blocks of one second, a bounded number for all of its calls
// together. Beyond it no stream is refused that has less than another: the newest second of the one that has most gives way.

/** 1 s of G.711. */
export const blockBytes = 8_000;
/** Kept for the next call; what is freed beyond goes back to the system. */
const maxIdleBlocks = 64;

export type BlockHolder = {
  readonly heldBlocks: number;
  /** Gives its newest block up, with the audio in it. */
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

  /** Undefined: all are in use, and none has more than the one that asks. */
  take(holder: BlockHolder): Uint8Array | undefined {
    this.#holders.add(holder);
    if (this.#heldBlocks < this.#maxBlocks) {
      this.#heldBlocks += 1;
      return this.#idle.pop() ?? new Uint8Array(blockBytes);
    }
    const greediest = this.#greediest();
    // One block more would make it as greedy as the other: then each keeps what it has.
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
