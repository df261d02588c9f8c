// How many notifications may be under way to one receiver, and how many calls may be in memory for it and for its account: so
// that one that is slow or dead fills neither our sockets nor our memory, and delays no other receiver. A receiver is an account's
// origin: what two accounts send to the same host are two receivers, neither of which the other one can fill.
//
// new         Nothing has been sent to it yet, or none has succeeded. It may have as much under way as a trusted one, but all
//             that are not trusted share one part of the calls in memory, so that any number of dead ones leaves the rest to
//             those that answer. Left with its first success, or when it fails several times in a row.
// trusted     It has succeeded. Its calls do not count into that part. Left when it fails several times in a row.
// failing     It failed several times in a row. Few are sent at once, few wait, and what waited beyond that goes back to the
//             database. It counts into the shared part. Left for `trusted` with one success.
// forgotten   Nothing under way or waiting for a minute: what is sent next finds it `new`.
//
// An account has a share of the calls in memory, and the same share of the part for receivers that are not trusted
// (`AccountShares`): no account keeps another one out, whatever the state of its receivers. What it has beyond its share goes
// back to the database when it would be sent. An account that holds more places than it may still get is crowded: each of its
// receivers then gets no more than a failing one, so that a few of them cannot take the account's share from the others.
//
// In each state, a call that finds no place stays in the database, and a trusted receiver that has room again says so.

export type GateLimits = {
  /** Sends at once to one receiver; each has a connection of its own. */
  readonly maxActive: number;
  /** The same while it fails: enough to see that it is back. */
  readonly maxActiveFailing: number;
  /** Failures in a row that make it a failing one. */
  readonly failuresToFailing: number;
  /** Calls that wait in memory for one receiver; more stay in the database. */
  readonly maxWaiting: number;
  /** The same while it fails: what those under way are followed by. */
  readonly maxWaitingFailing: number;
  /** Calls in memory: bounds it, and the sockets, whatever number of receivers hangs. Accounts share them. */
  readonly maxCalls: number;
  /** Those of receivers that are not trusted. Accounts share them, too. */
  readonly maxUntrusted: number;
};

export const defaultGateLimits: GateLimits = {
  maxActive: 32,
  maxActiveFailing: 2,
  failuresToFailing: 5,
  maxWaiting: 200,
  maxWaitingFailing: 8,
  maxCalls: 2_000,
  // Half of them.
  maxUntrusted: 1_000,
};

/** To whom notifications go: an origin (scheme, host and port), for one account. */
export type Receiver = { readonly accountId: string; readonly origin: string };

type Gate = Receiver & {
  active: number;
  failuresInRow: number;
  hasSucceeded: boolean;
  readonly waiting: ((entered: boolean) => void)[];
  /** Calls were turned away for want of room: there are more in the database. */
  leftBehind: boolean;
  lastUsedAt: number;
};

/** An idle receiver is forgotten after this, and how it failed with it. */
const forgetAfterMs = 60_000;

/** Free places in memory, for calls that are looked for in the database. */
export type Rooms = {
  readonly byReceiver: readonly (Receiver & { readonly room: number })[];
  readonly byAccount: readonly (AccountRoom & { readonly accountId: string })[];
  /** For every account that is not named. */
  readonly ofOthers: AccountRoom;
};

export type AccountRoom = {
  readonly room: number;
  /** For each receiver of the account that is not named. */
  readonly byNewReceiver: number;
};

export class OriginGates {
  readonly #gates = new Map<string, Gate>();
  readonly #limits: GateLimits;
  /** Calls in memory. */
  readonly #calls: AccountShares;
  /** Calls under way to, and waiting for, receivers that are not trusted. */
  readonly #untrusted: AccountShares;
  #isClosed = false;

  constructor(limits: GateLimits) {
    this.#limits = limits;
    this.#calls = new AccountShares(limits.maxCalls);
    this.#untrusted = new AccountShares(limits.maxUntrusted);
  }

  /** May a call for this receiver be taken into memory? */
  hasRoom(receiver: Receiver): boolean {
    const gate = this.#gates.get(keyOf(receiver));
    if (gate === undefined) return this.#accountRoom(receiver.accountId).byNewReceiver > 0;
    const room = this.#roomOf(gate);
    if (room === 0) gate.leftBehind = true;
    return room > 0;
  }

  /** A call of the account is in memory from now on, until it is `released`. */
  hold(accountId: string): void {
    this.#calls.add(accountId, 1);
  }

  release(accountId: string): void {
    this.#calls.add(accountId, -1);
  }

  /**
   * Waits for a place. False: too many wait already, its account holds more than its share, or it is closed. Each true is
   * followed by one `leave`.
   */
  async enter(receiver: Receiver, now: number): Promise<boolean> {
    const gate = this.#gateOf(receiver);
    gate.lastUsedAt = now;
    const isOver = this.#calls.isOver(receiver.accountId);
    if (!isOver && this.#isOpen(gate)) {
      this.#change(gate, () => (gate.active += 1));
      return true;
    }
    if (isOver || this.#isClosed || gate.waiting.length >= this.#maxWaiting(gate)) {
      gate.leftBehind = true;
      return false;
    }
    // Where it comes true, `leave` has counted it in.
    return await new Promise<boolean>((resolve) => {
      this.#change(gate, () => gate.waiting.push(resolve));
    });
  }

  /** Sends away all that wait. */
  close(): void {
    this.#isClosed = true;
    for (const gate of this.#gates.values()) {
      this.#change(gate, () => sendAway(gate.waiting.splice(0)));
    }
  }

  /**
   * `failed`: the receiver as a whole; undefined where nothing was sent. True: a trusted receiver has room again for calls
   * that were left in the database.
   */
  leave(receiver: Receiver, now: number, failed: boolean | undefined): boolean {
    const gate = this.#gateOf(receiver);
    gate.lastUsedAt = now;
    this.#change(gate, () => {
      gate.active -= 1;
      if (failed !== undefined) this.#judge(gate, failed);
      while (gate.waiting.length > 0 && this.#isOpen(gate)) {
        gate.active += 1;
        gate.waiting.shift()?.(true);
      }
    });
    if (!gate.leftBehind || !this.#isTrusted(gate)) return false;
    // A look into the database is worth it for half of what it may have.
    const most = this.#isCrowded(gate.accountId) ? this.#mostOfCrowded() : this.#maxWaiting(gate);
    if (this.#roomOf(gate) < most / 2) return false;
    gate.leftBehind = false;
    return true;
  }

  rooms(): Rooms {
    const byReceiver = [...this.#gates.values()].map((gate) => {
      const room = this.#roomOf(gate);
      if (room === 0) gate.leftBehind = true;
      return { accountId: gate.accountId, origin: gate.origin, room };
    });
    const byAccount = [...this.#calls.accounts()].map((accountId) => ({
      accountId,
      ...this.#accountRoom(accountId),
    }));
    const { free } = this.#calls;
    const byNewReceiver = Math.min(this.#limits.maxWaiting, free, this.#untrusted.free);
    return { byReceiver, byAccount, ofOthers: { room: free, byNewReceiver } };
  }

  forgetIdle(now: number): void {
    for (const [key, gate] of this.#gates) {
      const isIdle = gate.active === 0 && gate.waiting.length === 0;
      if (isIdle && now - gate.lastUsedAt > forgetAfterMs) this.#gates.delete(key);
    }
  }

  /** Receivers in memory. */
  get size(): number {
    return this.#gates.size;
  }

  #gateOf(receiver: Receiver): Gate {
    const key = keyOf(receiver);
    let gate = this.#gates.get(key);
    if (gate === undefined) {
      gate = {
        ...receiver,
        active: 0,
        failuresInRow: 0,
        hasSucceeded: false,
        waiting: [],
        leftBehind: false,
        lastUsedAt: 0,
      };
      this.#gates.set(key, gate);
    }
    return gate;
  }

  #judge(gate: Gate, failed: boolean): void {
    if (!failed) {
      gate.failuresInRow = 0;
      gate.hasSucceeded = true;
      return;
    }
    gate.failuresInRow += 1;
    if (!this.#isFailing(gate)) return;
    gate.hasSucceeded = false;
    // What waited for a receiver that was well goes back to the database.
    sendAway(gate.waiting.splice(this.#limits.maxWaitingFailing));
  }

  #isFailing(gate: Gate): boolean {
    return gate.failuresInRow >= this.#limits.failuresToFailing;
  }

  #isTrusted(gate: Gate): boolean {
    return gate.hasSucceeded && !this.#isFailing(gate);
  }

  #isOpen(gate: Gate): boolean {
    const { maxActive, maxActiveFailing } = this.#limits;
    return gate.active < (this.#isFailing(gate) ? maxActiveFailing : maxActive);
  }

  #maxWaiting(gate: Gate): number {
    const { maxWaiting, maxWaitingFailing } = this.#limits;
    return this.#isFailing(gate) ? maxWaitingFailing : maxWaiting;
  }

  #isCrowded(accountId: string): boolean {
    return this.#calls.held(accountId) >= this.#calls.room(accountId);
  }

  /** For a receiver of a crowded account: what is under way to it, and what waits. */
  #mostOfCrowded(): number {
    return this.#limits.maxActiveFailing + this.#limits.maxWaitingFailing;
  }

  #roomOf(gate: Gate): number {
    const { accountId, active, waiting } = gate;
    const room = this.#isCrowded(accountId)
      ? this.#mostOfCrowded() - active - waiting.length
      : this.#maxWaiting(gate) - waiting.length;
    const bounds = [room, this.#calls.room(accountId)];
    if (!this.#isTrusted(gate)) bounds.push(this.#untrusted.room(accountId));
    return Math.max(0, Math.min(...bounds));
  }

  #accountRoom(accountId: string): AccountRoom {
    const room = this.#calls.room(accountId);
    const most = this.#isCrowded(accountId) ? this.#mostOfCrowded() : this.#limits.maxWaiting;
    return { room, byNewReceiver: Math.min(most, room, this.#untrusted.room(accountId)) };
  }

  /** Keeps the sum right: it is asked for with every call that is accepted. */
  #change(gate: Gate, change: () => void): void {
    const untrusted = () => (this.#isTrusted(gate) ? 0 : gate.active + gate.waiting.length);
    const before = untrusted();
    change();
    this.#untrusted.add(gate.accountId, untrusted() - before);
  }
}

function keyOf({ accountId, origin }: Receiver): string {
  return `${accountId} ${origin}`;
}

function sendAway(waiting: readonly ((entered: boolean) => void)[]): void {
  for (const resolve of waiting) resolve(false);
}

/** Scheme, host and port. */
export function originOf(url: string | undefined): string {
  return url !== undefined && URL.canParse(url) ? new URL(url).origin : '';
}

/**
 * Places that accounts share. An account may have as many as all accounts together leave free: half of them when it is alone,
 * a third when another one wants as many, a tenth beside nine. So an account that comes always finds a place, whatever the
 * others hold, and nothing has to be known about how many there are. Packet switches share their memory in the same way
 * ("dynamic thresholds").
 *
 * An account may come to hold more than its share: others came, or several calls were let in at the same moment. It gets no more
 * then, and gives back what it can (`isOver`).
 */
class AccountShares {
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
