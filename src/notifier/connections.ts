// Connections to receivers. Each connection has its own undici client and carries one attempt at a
// time. We can't use undici's pools, because they let requests wait for a connection indefinitely,
// don't abort a request that is still waiting, and reconnect after each abort.
//
// in use     An attempt is using the connection. Afterwards the connection becomes idle if the
//            response has been read to the end, otherwise we destroy it. There are never more
//            connections in use than attempts.
// idle       The connection is open for the next attempt at the same receiver. It is destroyed when
//            either side closes it. We close it after four seconds, or after the receiver's
//            announced keep-alive time, but within 30 seconds.
// destroyed  The socket has been closed. A socket that was still connecting closes at the connect
//            time-out.

import { buildConnector, Client } from 'undici';
import type { AddressGuard } from '../lib/address-guard.ts';

/** If this many connections are idle, we close a connection after its attempt. */
const maxIdle = 1_000;
const maxIdleMs = 30_000;

export class Connections {
  readonly #options: Client.Options;
  readonly #all = new Set<Client>();
  /** Idle connections by the receiver's origin. */
  readonly #idle = new Map<string, Set<Client>>();
  #idleCount = 0;

  /** @param timeoutMs time-out for opening one connection */
  constructor(guard: AddressGuard, timeoutMs: number) {
    this.#options = {
      // Shared by all clients, because the connector caches TLS sessions for resumption.
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

  /** Makes a connection idle. Call this once the response has been read to the end. */
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
