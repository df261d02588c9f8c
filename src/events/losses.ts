// Remembers since when NATS may have lost events, until this process has compared all calls itself.
// While another node does that, this one only adds what the database doesn't know yet: the last
// events of its own live calls. It compares all calls afterwards, because the other node may have
// noticed less of the loss, or may have died in the middle.

/**
 * `all`: compared all calls. `own`: another node was comparing all calls, so only this node's own
 * calls were compared.
 */
export type Compared = 'all' | 'own';

export class Losses {
  #since: Date | undefined;
  /** The loss for which this node's own calls have been compared. */
  #ownSince: Date | undefined;

  /** Messages since this time may be lost. */
  note(since: Date): void {
    if (this.#since === undefined || since < this.#since) this.#since = since;
  }

  /**
   * Repairs if anything may be lost. Call this regularly. If the repair fails, the next call tries
   * again.
   *
   * @param repair may leave out the own calls if `isOwnDone` is true
   */
  async repair(repair: (since: Date, isOwnDone: boolean) => Promise<Compared>): Promise<void> {
    const since = this.#since;
    if (since === undefined) return;
    const compared = await repair(since, this.#ownSince === since);
    if (compared === 'own') this.#ownSince = since;
    // Another loss may have been noted meanwhile.
    else if (this.#since === since) this.#since = undefined;
  }
}
