// The dialers of a storm that suppress numbers and free them again. They do not wait for each
// other: several of them often have requests about the same number under way.

import { setTimeout as pause } from 'node:timers/promises';
import type { Random } from '../random.ts';
import { countOverlapping, type SuppressionRequest } from './suppression-history.ts';

export type Person = { readonly accountId: string; readonly number: string };
type Mutable<Item> = { -readonly [Key in keyof Item]: Item[Key] };

export type SuppressorPorts = {
  /** How many dialers there are, and how long each pauses between two requests. */
  readonly dialers: number;
  readonly pauseMs: { readonly from: number; readonly to: number };
  /** Returns a person whose gateway is silent, if there is one. */
  readonly silent: () => Person | undefined;
  /**
   * Sends a PUT, or a DELETE if `suppressedUntil` is 0. Resolves with the answer, or when the
   * request can have no more effect.
   */
  readonly send: (request: SentRequest) => Promise<'answered' | 'over' | 'not-sent'>;
};

export type SentRequest = Pick<SuppressionRequest, 'accountId' | 'number' | 'suppressedUntil'>;

/** Numbers of calls that were accepted a moment ago. */
const recentCalls = 100;
/** Numbers with requests: so few that several dialers get hold of the same one. */
const recentPeople = 40;
/** Shares of the requests. `silent`: about a number whose gateway is silent. */
const shares = { again: 0.5, silent: 0.05, remove: 0.4, expires: 0.2 } as const;
const expiresAfterMs = 3_000;
const never = Number.POSITIVE_INFINITY;

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
    const { dialers } = this.#ports;
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
    const { pauseMs } = this.#ports;
    while (!this.#isOver) {
      await pause(this.#random.between(pauseMs.from, pauseMs.to));
      const person = this.#next();
      if (person !== undefined) await this.#request(person);
    }
  }

  #next(): Person | undefined {
    const kind = this.#random.next();
    const silent = this.#ports.silent();
    if (kind < shares.silent && silent !== undefined) return silent;
    const again = kind < shares.silent + shares.again ? this.anyPerson() : undefined;
    const person = again ?? this.#calls[this.#random.between(0, recentCalls - 1)];
    if (person !== undefined) this.#people[this.#random.between(0, recentPeople - 1)] = person;
    return person;
  }

  async #request({ accountId, number }: Person): Promise<void> {
    const expires = this.#random.next() < shares.expires ? Date.now() + expiresAfterMs : never;
    const suppressedUntil = this.#random.next() < shares.remove ? 0 : expires;
    const askedAt = Date.now();
    const request: Mutable<SuppressionRequest> = { accountId, number, suppressedUntil, askedAt };
    this.requests.push(request);
    const answer = await this.#ports.send(request);
    if (answer === 'not-sent') this.requests.splice(this.requests.indexOf(request), 1);
    else if (answer === 'over') request.overAt = Date.now();
    else {
      request.answeredAt = Date.now();
      if (suppressedUntil > 0) {
        this.#slowestPutMs = Math.max(this.#slowestPutMs, request.answeredAt - askedAt);
      }
    }
  }
}
