// Places that accounts share. An account may have as many as all accounts together leave free: half of them when it is alone,
// a third when another one wants as many, a tenth beside nine. So an account that comes always finds a place, whatever the
// others hold, and nothing has to be known about how many there are. Packet switches share their memory in the same way
// ("dynamic thresholds").
//
// An account that holds more than its share, because others came, keeps what it has, and gets no more until it holds less.

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

  /** What an account may have that holds none. */
  get free(): number {
    return Math.max(0, this.#places - this.#total);
  }

  /** Accounts that hold places. */
  accounts(): Iterable<string> {
    return this.#held.keys();
  }
}
