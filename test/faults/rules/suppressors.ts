// The dialers of the rules storm that suppress numbers and free them again. They do not wait for
// each other: several of them often have requests about the same number under way.

import { setTimeout as pause } from 'node:timers/promises';
import type { Suppression } from '../../../src/calls/rules/suppression.ts';
import type { Random } from '../random.ts';
import type { Callee } from './callee.ts';
import type { RuleNode } from './rule-node.ts';
import { countOverlapping, type SuppressionRequest } from './suppression-history.ts';

export type Person = { readonly accountId: string; readonly number: string };
type Mutable<Item> = { -readonly [Key in keyof Item]: Item[Key] };

export type SuppressorPorts = {
  readonly callee: Pick<Callee, 'silent'>;
  readonly anyNode: () => RuleNode;
  readonly count: (what: string) => void;
};

const dialers = 12;
const pauseMs = { from: 5, to: 80 } as const;
/** Numbers of calls that were accepted a moment ago. */
const recentCalls = 100;
/** Numbers with requests: so few that several dialers get hold of the same one. */
const recentPeople = 40;
/** Shares of the requests. `silent`: about a number whose gateway is silent. */
const shares = { again: 0.5, silent: 0.05, remove: 0.4, expires: 0.2 } as const;
const expiresAfterMs = 3_000;

export class Suppressors {
  readonly requests: Mutable<SuppressionRequest>[] = [];
  readonly #random: Random;
  readonly #ports: SuppressorPorts;
  readonly #calls: Person[] = [];
  readonly #people: Person[] = [];
  #running: Promise<unknown> | undefined;
  #isOver = false;
  #slowestPutMs = 0;

  constructor(random: Random, ports: SuppressorPorts) {
    this.#random = random;
    this.#ports = ports;
  }

  start(): void {
    this.#running = Promise.all(Array.from({ length: dialers }, () => this.#run()));
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#running;
  }

  noteCall(person: Person): void {
    this.#calls[this.#random.between(0, recentCalls - 1)] = person;
  }

  /** Returns a person about whom there was a request a moment ago, if there is one. */
  anyPerson(): Person | undefined {
    return this.#people[this.#random.between(0, recentPeople - 1)];
  }

  counts(): Readonly<Record<string, number>> {
    const { requests } = this;
    return {
      'requests about suppressions': requests.length,
      'of which another one overlaps': countOverlapping(requests),
      'of which without an answer': requests.filter(({ answeredAt }) => answeredAt === undefined)
        .length,
      'longest PUT, ms': this.#slowestPutMs,
    };
  }

  async #run(): Promise<void> {
    while (!this.#isOver) {
      await pause(this.#random.between(pauseMs.from, pauseMs.to));
      const person = this.#next();
      if (person === undefined) continue;
      if (this.#random.next() < shares.remove) await this.#remove(person);
      else await this.#put(person);
    }
  }

  #next(): Person | undefined {
    const kind = this.#random.next();
    const [silent] = this.#ports.callee.silent;
    if (kind < shares.silent && silent !== undefined && silent.accountId !== 'free') return silent;
    const again = kind < shares.silent + shares.again ? this.anyPerson() : undefined;
    const person = again ?? this.#calls[this.#random.between(0, recentCalls - 1)];
    if (person !== undefined) this.#people[this.#random.between(0, recentPeople - 1)] = person;
    return person;
  }

  async #put({ accountId, number }: Person): Promise<void> {
    const expires = this.#random.next() < shares.expires ? Date.now() + expiresAfterMs : undefined;
    const suppression: Suppression = {
      ...{ reason: 'opt-out', source: 'storm' },
      ...(expires === undefined ? {} : { until: new Date(expires) }),
    };
    const suppressedUntil = expires ?? Number.POSITIVE_INFINITY;
    const tookMs = await this.#request({ accountId, number, suppressedUntil }, async (node) => {
      const app = { accountId, appId: 'app-1' };
      const left = await node.suppressing.suppress(app, `+${number}`, suppression);
      if (left.length > 0) this.#ports.count('PUTs that named calls left');
    });
    this.#slowestPutMs = Math.max(this.#slowestPutMs, tookMs);
  }

  async #remove({ accountId, number }: Person): Promise<void> {
    await this.#request(
      { accountId, number, suppressedUntil: 0 },
      async (node) => void (await node.suppressions.remove(accountId, `+${number}`)),
    );
  }

  /** Sends a request to one process, and notes when. Returns how long it took. */
  async #request(
    about: Pick<SuppressionRequest, 'accountId' | 'number' | 'suppressedUntil'>,
    send: (node: RuleNode) => Promise<void>,
  ): Promise<number> {
    const node = this.#ports.anyNode();
    if (!node.isAlive) return 0;
    const request: Mutable<SuppressionRequest> = { ...about, askedAt: Date.now() };
    this.requests.push(request);
    const isAnswered = await send(node).then(
      () => node.isAlive,
      () => false,
    );
    if (isAnswered) request.answeredAt = Date.now();
    // The statement whose answer was lost has been executed. That of a dead process may still be
    // under way.
    else {
      if (!node.isAlive) await node.kill();
      request.overAt = Date.now();
    }
    return Date.now() - request.askedAt;
  }
}
