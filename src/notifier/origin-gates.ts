// How many notifications may be under way to one receiver, and how many calls may wait in memory for it: so that one that is
// slow or dead fills neither our sockets nor our memory, and delays no other receiver.
//
// new         Nothing has been sent to it yet, or none has succeeded. It may have as much under way as a trusted one, but all
//             that are not trusted share one part of the calls in memory, so that any number of dead ones leaves the rest to
//             those that answer. Left with its first success, or when it fails several times in a row.
// trusted     It has succeeded. Its calls do not count into that part. Left when it fails several times in a row.
// failing     It failed several times in a row. Few are sent at once, few wait, and what waited beyond that goes back to the
//             database. It counts into the shared part. Left for `trusted` with one success.
// forgotten   Nothing under way or waiting for a minute: what is sent next finds it `new`.
//
// In each, a call that finds no place stays in the database, and a trusted receiver that has room again says so.

export type GateLimits = {
  /** Sends at once to one receiver. */
  readonly maxActive: number;
  /** The same while it fails: enough to see that it is back. */
  readonly maxActiveFailing: number;
  /** Failures in a row that make it a failing one. */
  readonly failuresToFailing: number;
  /** Calls that wait in memory for one receiver; more stay in the database. */
  readonly maxWaiting: number;
  /** The same while it fails: what those under way are followed by. */
  readonly maxWaitingFailing: number;
  /**
   * Calls in memory for all receivers together that are not trusted. From so many of all on it is crowded: none gets more
   * than a failing one, so that a handful of slow receivers cannot take every place.
   */
  readonly maxUntrusted: number;
};

export const defaultGateLimits: GateLimits = {
  maxActive: 32,
  maxActiveFailing: 2,
  failuresToFailing: 5,
  maxWaiting: 200,
  maxWaitingFailing: 8,
  // Half of the calls in memory.
  maxUntrusted: 1_000,
};

type Gate = {
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
  readonly byOrigin: ReadonlyMap<string, number>;
  /** Of every receiver that is not named. */
  readonly ofOthers: number;
};

export class OriginGates {
  readonly #gates = new Map<string, Gate>();
  readonly #limits: GateLimits;
  /** Calls under way to, and waiting for, receivers that are not trusted. */
  #untrusted = 0;
  /** To and for all. */
  #total = 0;
  #isClosed = false;

  constructor(limits: GateLimits) {
    this.#limits = limits;
  }

  /** May a call for this receiver be taken into memory? */
  hasRoom(origin: string): boolean {
    const gate = this.#gates.get(origin);
    const room = gate === undefined ? this.#roomOfOthers() : this.#roomOf(gate);
    if (room === 0 && gate !== undefined) gate.leftBehind = true;
    return room > 0;
  }

  /** Waits for a place. False: too many wait already, or it is closed. Each true is followed by one `leave`. */
  async enter(origin: string, now: number): Promise<boolean> {
    const gate = this.#gateOf(origin);
    gate.lastUsedAt = now;
    if (this.#isOpen(gate)) {
      this.#change(gate, () => (gate.active += 1));
      return true;
    }
    if (this.#isClosed || gate.waiting.length >= this.#maxWaiting(gate)) {
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
  leave(origin: string, now: number, failed: boolean | undefined): boolean {
    const gate = this.#gateOf(origin);
    gate.lastUsedAt = now;
    this.#change(gate, () => {
      gate.active -= 1;
      if (failed !== undefined) this.#judge(gate, failed);
      while (gate.waiting.length > 0 && this.#isOpen(gate)) {
        gate.active += 1;
        gate.waiting.shift()?.(true);
      }
    });
    const hasRoom = gate.waiting.length <= this.#maxWaiting(gate) / 2;
    if (!gate.leftBehind || !hasRoom || !this.#isTrusted(gate)) return false;
    gate.leftBehind = false;
    return true;
  }

  rooms(): Rooms {
    const byOrigin = new Map<string, number>();
    for (const [origin, gate] of this.#gates) {
      const room = this.#roomOf(gate);
      byOrigin.set(origin, room);
      if (room === 0) gate.leftBehind = true;
    }
    return { byOrigin, ofOthers: this.#roomOfOthers() };
  }

  forgetIdle(now: number): void {
    for (const [origin, gate] of this.#gates) {
      const isIdle = gate.active === 0 && gate.waiting.length === 0;
      if (isIdle && now - gate.lastUsedAt > forgetAfterMs) this.#gates.delete(origin);
    }
  }

  /** Receivers in memory. */
  get size(): number {
    return this.#gates.size;
  }

  #gateOf(origin: string): Gate {
    let gate = this.#gates.get(origin);
    if (gate === undefined) {
      gate = {
        active: 0,
        failuresInRow: 0,
        hasSucceeded: false,
        waiting: [],
        leftBehind: false,
        lastUsedAt: 0,
      };
      this.#gates.set(origin, gate);
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

  #roomOf(gate: Gate): number {
    const { maxWaitingFailing, maxUntrusted } = this.#limits;
    const isCrowded = this.#total >= maxUntrusted;
    const most = isCrowded ? maxWaitingFailing : this.#maxWaiting(gate);
    const room = Math.max(0, most - gate.waiting.length);
    return this.#isTrusted(gate) ? room : Math.min(room, this.#untrustedRoom());
  }

  #roomOfOthers(): number {
    return Math.min(this.#limits.maxWaiting, this.#untrustedRoom());
  }

  #untrustedRoom(): number {
    return Math.max(0, this.#limits.maxUntrusted - this.#untrusted);
  }

  /** Keeps the sum right: it is asked for with every call that is accepted. */
  #change(gate: Gate, change: () => void): void {
    const count = () => gate.active + gate.waiting.length;
    const untrusted = () => (this.#isTrusted(gate) ? 0 : count());
    const before = { all: count(), untrusted: untrusted() };
    change();
    this.#total += count() - before.all;
    this.#untrusted += untrusted() - before.untrusted;
  }
}

function sendAway(waiting: readonly ((entered: boolean) => void)[]): void {
  for (const resolve of waiting) resolve(false);
}

/** Scheme, host and port: what a receiver is known by. */
export function originOf(url: string | undefined): string {
  return url !== undefined && URL.canParse(url) ? new URL(url).origin : '';
}
