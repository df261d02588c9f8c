// How many notifications may be under way to one receiver: so that one that is slow or dead fills neither our sockets
// nor our memory, and delays nobody else.

export type GateLimits = {
  /** Sends at once to one receiver. */
  readonly maxActive: number;
  /** The same while it fails: enough to see that it is back. */
  readonly maxActiveFailing: number;
  /** Failures in a row that make it a failing one. */
  readonly failuresToFailing: number;
  /** Calls that wait in memory for one receiver; more stay in the database. */
  readonly maxWaiting: number;
};

export const defaultGateLimits: GateLimits = {
  maxActive: 32,
  maxActiveFailing: 2,
  failuresToFailing: 5,
  maxWaiting: 200,
};

type Gate = {
  active: number;
  failuresInRow: number;
  readonly waiting: ((entered: boolean) => void)[];
  /** As the URLs spell it, which is how the database knows it. */
  readonly spellings: Set<string>;
  lastUsedAt: number;
};

/** Callers may spell a receiver in countless ways; those beyond only cost a claim that is given back. */
const maxSpellings = 20;
/** An idle receiver is forgotten after this, and how it failed with it. */
const forgetAfterMs = 60_000;

export class OriginGates {
  readonly #gates = new Map<string, Gate>();
  readonly #limits: GateLimits;
  #isClosed = false;

  constructor(limits: GateLimits) {
    this.#limits = limits;
  }

  /** May a call for this URL be taken into memory? */
  hasRoom(url: string): boolean {
    const gate = this.#gates.get(originOf(url));
    return gate === undefined || !this.#isFull(gate);
  }

  /** Waits for a place. False: too many wait already, or it is closed. Each true is followed by one `leave`. */
  async enter(url: string, now: number): Promise<boolean> {
    const gate = this.#gateOf(url);
    gate.lastUsedAt = now;
    if (this.#isOpen(gate)) {
      gate.active += 1;
      return true;
    }
    if (this.#isClosed || this.#isFull(gate)) return false;
    // Where it comes true, `leave` has counted it in.
    return await new Promise<boolean>((resolve) => gate.waiting.push(resolve));
  }

  /** Sends away everybody who waits. */
  close(): void {
    this.#isClosed = true;
    for (const gate of this.#gates.values()) {
      for (const resolve of gate.waiting.splice(0)) resolve(false);
    }
  }

  /** `failed`: the receiver as a whole; undefined where nothing was sent. */
  leave(url: string, now: number, failed: boolean | undefined): void {
    const gate = this.#gateOf(url);
    gate.active -= 1;
    gate.lastUsedAt = now;
    if (failed !== undefined) gate.failuresInRow = failed ? gate.failuresInRow + 1 : 0;
    while (gate.waiting.length > 0 && this.#isOpen(gate)) {
      gate.active += 1;
      gate.waiting.shift()?.(true);
    }
  }

  /** Receivers that can take no more at present, as URLs spell them: leave their calls in the database. */
  fullOrigins(): readonly string[] {
    return [...this.#gates.values()]
      .filter((gate) => this.#isFull(gate))
      .flatMap((gate) => [...gate.spellings]);
  }

  forgetIdle(now: number): void {
    for (const [origin, gate] of this.#gates) {
      const isIdle = gate.active === 0 && gate.waiting.length === 0;
      if (isIdle && now - gate.lastUsedAt > forgetAfterMs) this.#gates.delete(origin);
    }
  }

  #gateOf(url: string): Gate {
    const origin = originOf(url);
    let gate = this.#gates.get(origin);
    if (gate === undefined) {
      gate = { active: 0, failuresInRow: 0, waiting: [], spellings: new Set(), lastUsedAt: 0 };
      this.#gates.set(origin, gate);
    }
    if (gate.spellings.size < maxSpellings) gate.spellings.add(spellingOf(url));
    return gate;
  }

  #isOpen(gate: Gate): boolean {
    const isFailing = gate.failuresInRow >= this.#limits.failuresToFailing;
    return gate.active < (isFailing ? this.#limits.maxActiveFailing : this.#limits.maxActive);
  }

  #isFull(gate: Gate): boolean {
    return gate.waiting.length >= this.#limits.maxWaiting;
  }
}

function originOf(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : '';
}

/** The same as the claim's SQL cuts out of the URL. */
function spellingOf(url: string): string {
  return /^[a-z]+:\/\/[^/?#]*/.exec(url.toLowerCase())?.[0] ?? '';
}
