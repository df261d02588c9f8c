// Limits concurrent attempts per receiver, and calls in memory per receiver and per account, so
// that a slow or dead receiver can't exhaust sockets or memory, or delay other receivers. By a
// receiver we mean an origin as used by one account. If two accounts send to the same host, that
// host is two receivers with separate limits.
//
// new        No attempt has succeeded yet. The receiver gets as many concurrent attempts as a
//            trusted one. All untrusted receivers share a limited part of the calls in memory,
//            which leaves the rest to working receivers no matter how many are dead. Next:
//            `trusted` after the first success, or `failing` after several failures in a row.
// trusted    An attempt has succeeded. The receiver's calls don't count towards the shared part.
//            Next: `failing` after several failures in a row.
// failing    Several attempts in a row have failed. We run only a few attempts and let only a few
//            calls wait, while all other calls go back to the database. The receiver's calls count
//            towards the shared part. Next: `trusted` after a single success.
// forgotten  The receiver has been idle for a minute. Next: `new` with the next notification.
//
// Each account gets a share of the calls in memory, and a share of the part for untrusted receivers
// (see `AccountShares`), so no account can crowd out another, regardless of the state of its
// receivers. If an account exceeds its share, its next calls go back to the database instead of
// being sent. We call an account crowded if it is using at least as many places as it may still
// get. Each receiver of a crowded account is limited to as many places as a failing receiver, which
// keeps a few receivers from using up the account's share.
//
// In every state, calls that can't get a place remain in the database. `leave` reports when a
// trusted receiver has room for those calls again.

export type GateLimits = {
  /** Limits concurrent attempts per receiver. Each attempt needs its own connection. */
  readonly maxActive: number;
  /**
   * Limits concurrent attempts at a failing receiver. A few attempts are enough to notice that the
   * receiver has recovered.
   */
  readonly maxActiveFailing: number;
  /** After this many consecutive failures, a receiver is considered to be failing. */
  readonly failuresToFailing: number;
  /**
   * How many calls may wait in memory for one receiver. Any further calls remain in the database.
   */
  readonly maxWaiting: number;
  /** Replaces `maxWaiting` for a failing receiver. */
  readonly maxWaitingFailing: number;
  /**
   * Limits the calls in memory across all accounts. This limit also bounds the number of sockets,
   * even if every receiver hangs.
   */
  readonly maxCalls: number;
  /** The part of `maxCalls` that untrusted receivers share, across all accounts. */
  readonly maxUntrusted: number;
};

export const defaultGateLimits: GateLimits = {
  maxActive: 32,
  maxActiveFailing: 2,
  failuresToFailing: 5,
  maxWaiting: 200,
  maxWaitingFailing: 8,
  maxCalls: 2_000,
  maxUntrusted: 1_000,
};

/** Where one account's notifications are sent, i.e. an origin (scheme, host and port). */
export type Receiver = { readonly accountId: string; readonly origin: string };

type Gate = Receiver & {
  active: number;
  failuresInRow: number;
  hasSucceeded: boolean;
  readonly waiting: ((entered: boolean) => void)[];
  /** True if calls for this receiver remain in the database because there was no room for them. */
  leftBehind: boolean;
  lastUsedAt: number;
};

/** After this idle time, we forget a receiver and its failure count. */
const forgetAfterMs = 60_000;

/** How many more calls we may load from the database. */
export type Rooms = {
  readonly byReceiver: readonly (Receiver & { readonly room: number })[];
  readonly byAccount: readonly (AccountRoom & { readonly accountId: string })[];
  /** The room for each account that isn't listed in `byAccount`. */
  readonly unlistedAccounts: AccountRoom;
};

export type AccountRoom = {
  readonly room: number;
  /** The room for each of the account's receivers that isn't listed in `byReceiver`. */
  readonly byNewReceiver: number;
};

export class OriginGates {
  readonly #gates = new Map<string, Gate>();
  readonly #limits: GateLimits;
  /** Calls in memory, by account. */
  readonly #calls: AccountShares;
  /** Calls being sent to, or waiting for, untrusted receivers, by account. */
  readonly #untrusted: AccountShares;
  #isClosed = false;

  constructor(limits: GateLimits) {
    this.#limits = limits;
    this.#calls = new AccountShares(limits.maxCalls);
    this.#untrusted = new AccountShares(limits.maxUntrusted);
  }

  /** Returns true if we may load a call for this receiver from the database. */
  hasRoom(receiver: Receiver): boolean {
    const gate = this.#gates.get(keyOf(receiver));
    if (gate === undefined) return this.#accountRoom(receiver.accountId).byNewReceiver > 0;
    const room = this.#roomOf(gate);
    if (room === 0) gate.leftBehind = true;
    return room > 0;
  }

  /** Counts one of the account's calls as being in memory until `release`. */
  hold(accountId: string): void {
    this.#calls.add(accountId, 1);
  }

  release(accountId: string): void {
    this.#calls.add(accountId, -1);
  }

  /**
   * Waits for a place. If it returns true, the caller must call `leave` once.
   *
   * @returns false if too many calls are already waiting, if the account exceeds its share, or if
   *   the gates are closed
   */
  async enter(receiver: Receiver, now: number): Promise<boolean> {
    const gate = this.#gateOf(receiver);
    gate.lastUsedAt = now;
    const exceedsShare = this.#calls.exceedsShare(receiver.accountId);
    if (!exceedsShare && this.#isOpen(gate)) {
      this.#change(gate, () => (gate.active += 1));
      return true;
    }
    if (exceedsShare || this.#isClosed || gate.waiting.length >= this.#maxWaiting(gate)) {
      gate.leftBehind = true;
      return false;
    }
    // If this resolves to true, another attempt's `leave` has already counted this attempt as
    // active.
    return await new Promise<boolean>((resolve) => {
      this.#change(gate, () => gate.waiting.push(resolve));
    });
  }

  /** Turns away all waiting calls, and any later call that would have to wait. */
  close(): void {
    this.#isClosed = true;
    for (const gate of this.#gates.values()) {
      this.#change(gate, () => turnAway(gate.waiting.splice(0)));
    }
  }

  /**
   * Gives a place back.
   *
   * @param failed whether the whole receiver is failing; undefined if nothing was sent
   * @returns true if the receiver is trusted and has room for calls that were left in the database
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
    // It's only worth reading the database once half of the receiver's places are free.
    const max = this.#isCrowded(gate.accountId) ? this.#maxForCrowded() : this.#maxWaiting(gate);
    if (this.#roomOf(gate) < max / 2) return false;
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
    return { byReceiver, byAccount, unlistedAccounts: { room: free, byNewReceiver } };
  }

  forgetIdle(now: number): void {
    for (const [key, gate] of this.#gates) {
      const isIdle = gate.active === 0 && gate.waiting.length === 0;
      if (isIdle && now - gate.lastUsedAt > forgetAfterMs) this.#gates.delete(key);
    }
  }

  /** Receivers that we haven't forgotten. */
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
    // Calls beyond a failing receiver's limit go back to the database.
    turnAway(gate.waiting.splice(this.#limits.maxWaitingFailing));
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

  /** Limits the calls, active and waiting, for each receiver of a crowded account. */
  #maxForCrowded(): number {
    return this.#limits.maxActiveFailing + this.#limits.maxWaitingFailing;
  }

  #roomOf(gate: Gate): number {
    const { accountId, active, waiting } = gate;
    const room = this.#isCrowded(accountId)
      ? this.#maxForCrowded() - active - waiting.length
      : this.#maxWaiting(gate) - waiting.length;
    const bounds = [room, this.#calls.room(accountId)];
    if (!this.#isTrusted(gate)) bounds.push(this.#untrusted.room(accountId));
    return Math.max(0, Math.min(...bounds));
  }

  #accountRoom(accountId: string): AccountRoom {
    const room = this.#calls.room(accountId);
    const max = this.#isCrowded(accountId) ? this.#maxForCrowded() : this.#limits.maxWaiting;
    return { room, byNewReceiver: Math.min(max, room, this.#untrusted.room(accountId)) };
  }

  /**
   * Applies a change and keeps the number of untrusted calls up to date. Counting them in `hasRoom`
   * would be too slow, because `hasRoom` is called for every stored notification.
   */
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

function turnAway(waiting: readonly ((entered: boolean) => void)[]): void {
  for (const resolve of waiting) resolve(false);
}

/** Returns the scheme, host and port, or an empty string if the URL is invalid or undefined. */
export function originOf(url: string | undefined): string {
  return url !== undefined && URL.canParse(url) ? new URL(url).origin : '';
}

/**
 * Places that accounts share. Each account may use as many places as are currently free. That
 * amounts to half of all places for a single account, a third each for two busy accounts, and an
 * eleventh each for ten. As a result, a new account always finds a place, and we don't need to know
 * the number of accounts. Packet switches share their memory in the same way ("dynamic
 * thresholds").
 *
 * An account can end up above its share if other accounts get places, or if several calls are let
 * in at the same moment. From then on, the account gets no more places, and some of its calls go
 * back to the database (see `exceedsShare`).
 */
class AccountShares {
  readonly #places: number;
  readonly #held = new Map<string, number>();
  #total = 0;

  constructor(places: number) {
    this.#places = places;
  }

  /** Occupies `count` places. A negative `count` frees places. */
  add(accountId: string, count: number): void {
    const held = this.held(accountId) + count;
    if (held === 0) this.#held.delete(accountId);
    else this.#held.set(accountId, held);
    this.#total += count;
  }

  held(accountId: string): number {
    return this.#held.get(accountId) ?? 0;
  }

  /** Returns how many more places the account may use. */
  room(accountId: string): number {
    return Math.max(0, this.free - this.held(accountId));
  }

  /** Returns true if the account is using more than its share. */
  exceedsShare(accountId: string): boolean {
    return this.held(accountId) > this.free;
  }

  /** The number of free places, which is also every account's share. */
  get free(): number {
    return Math.max(0, this.#places - this.#total);
  }

  /** Returns the accounts that are using places. */
  accounts(): Iterable<string> {
    return this.#held.keys();
  }
}
