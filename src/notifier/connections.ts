// Connections to receivers. Each has an undici client of its own, on which one attempt at a time is made: undici's pools let a
// request wait for a connection without a bound, do not deliver an abort to it there, and connect again after each abort.
//
// in use     One attempt has it, from `take` on. Left with the attempt: for `idle` if the reply was read to its end, else it is
//            destroyed. Whoever bounds attempts bounds these.
// idle       Open, for the next attempt at the same receiver. Destroyed when either side closes it, which our side does after
//            four seconds, or after the time that the receiver asks for, 30 seconds at most.
// destroyed  Its socket is closed. One that was still being made is closed when its own time is over.

import { buildConnector, Client } from 'undici';
import type { AddressGuard } from '../lib/address-guard.ts';

/** Open without an attempt; beyond it a connection is closed after its attempt. */
const maxIdle = 1_000;
const maxIdleMs = 30_000;

export class Connections {
  readonly #options: Client.Options;
  readonly #all = new Set<Client>();
  /** By the receiver's origin. */
  readonly #idle = new Map<string, Set<Client>>();
  #idleCount = 0;

  /** `timeoutMs`: for making one. */
  constructor(guard: AddressGuard, timeoutMs: number) {
    this.#options = {
      // One for all: it keeps what TLS needs to resume a session.
      connect: buildConnector({ timeout: timeoutMs, lookup: guard.lookup }),
      keepAliveMaxTimeout: maxIdleMs,
    };
  }

  take(origin: string): Client {
    const [idle] = this.#idle.get(origin) ?? [];
    if (idle === undefined) return this.#open(origin);
    this.#takeFromIdle(origin, idle);
    return idle;
  }

  /** Its reply was read to the end. */
  giveBack(origin: string, client: Client): void {
    if (!client.stats.connected || this.#idleCount >= maxIdle) {
      this.destroy(client);
      return;
    }
    const idle = this.#idle.get(origin) ?? new Set();
    this.#idle.set(origin, idle.add(client));
    this.#idleCount += 1;
  }

  destroy(client: Client): void {
    this.#all.delete(client);
    client.destroy().catch(() => undefined);
  }

  close(): void {
    for (const client of this.#all) this.destroy(client);
    this.#idle.clear();
    this.#idleCount = 0;
  }

  #open(origin: string): Client {
    const client = new Client(origin, this.#options);
    this.#all.add(client);
    client.on('disconnect', () => {
      if (this.#takeFromIdle(origin, client)) this.destroy(client);
    });
    return client;
  }

  #takeFromIdle(origin: string, client: Client): boolean {
    const idle = this.#idle.get(origin);
    if (idle?.delete(client) !== true) return false;
    this.#idleCount -= 1;
    if (idle.size === 0) this.#idle.delete(origin);
    return true;
  }
}
