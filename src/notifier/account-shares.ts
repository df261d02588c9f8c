// Places that accounts share. An account may have as many as all accounts together leave free: half of them when it is alone,
// a third when another one wants as many, a tenth beside nine. So an account that comes always finds a place, whatever the
// others hold, and nothing has to be known about how many there are. Packet switches share their memory in the same way
// ("dynamic thresholds").
//
// An account may come to hold more than its share: others came, or several calls were let in at the same moment. It gets no more
// then, and gives back what it can (`isOver`).

export class AccountShares {
  readonly #places: number;
  readonly #held = new Map<string, number>();
  #total = 0;

  constructor(places: number) {
    this.#places = places;
  }

  /** `count`: negative where places are given back. */
  add(accountId: string, count: number): void {
    const held = this.held(accountId) + count;
    if (held === 0) this.#held.delete(accountId);
    else this.#held.set(accountId, held);
    this.#total += count;
  }

  held(accountId: string): number {
    return this.#held.get(accountId) ?? 0;
  }

  /** How many more the account may have. */
  room(accountId: string): number {
    return Math.max(0, this.free - this.held(accountId));
  }

  /** It holds more than its share. */
  isOver(accountId: string): boolean {
    return this.held(accountId) > this.free;
  }

  /** What an account may have that holds none. */
  get free(): number {
    return Math.max(0, this.#places - this.#total);
  }

  /** Accounts that hold places. */
  accounts(): Iterable<string> {
    return this.#held.keys();
  }
}
