// Resolves host names and caches the results for a short time. The cache also ensures that a call's
// ACK and BYE are sent in the order in which the application sent them.

import { lookup } from 'node:dns/promises';
import { within } from '../../../lib/within.ts';
import type { Target, TargetPeer } from './sip-target.ts';

type NameTarget = Extract<Target, { kind: 'name' }>;

const cacheMs = 30_000;
/** This is more than enough, because applications only use a handful of trunks by name. */
const maxCached = 1_000;
/**
 * Look-ups run in libuv's thread pool, which is small, so any further look-ups would just be queued
 * there.
 */
const maxPending = 256;
/** If a look-up takes longer, we treat it as a DNS error. Note that timer B is much longer. */
const timeoutMs = 5_000;

export class NameResolver {
  readonly #family: 4 | 6;
  readonly #cache = new Map<string, { readonly address: string; readonly untilMs: number }>();
  readonly #pending = new Map<string, Promise<string | undefined>>();

  constructor(family: 4 | 6) {
    this.#family = family;
  }

  /**
   * Calls `onResolved` with the peer, or with undefined if the name couldn't be resolved. If the
   * name is cached, that happens before this function returns.
   */
  resolve(target: NameTarget, onResolved: (peer: TargetPeer | undefined) => void): void {
    const cached = this.#cache.get(target.host);
    if (cached !== undefined && cached.untilMs > Date.now()) {
      onResolved(toPeer(target, cached.address));
      return;
    }
    const pending = this.#pending.get(target.host) ?? this.#start(target.host);
    if (pending === undefined) {
      onResolved(undefined);
      return;
    }
    pending.then(
      (address) => onResolved(address === undefined ? undefined : toPeer(target, address)),
      () => onResolved(undefined),
    );
  }

  #start(host: string): Promise<string | undefined> | undefined {
    if (this.#pending.size >= maxPending) return undefined;
    const pending = this.#lookup(host).finally(() => this.#pending.delete(host));
    this.#pending.set(host, pending);
    return pending;
  }

  async #lookup(host: string): Promise<string | undefined> {
    try {
      const found = await within(lookup(host, { family: this.#family }), timeoutMs);
      if (found !== undefined) this.#remember(host, found.address);
      return found?.address;
    } catch {
      return undefined;
    }
  }

  #remember(host: string, address: string): void {
    if (this.#cache.size >= maxCached) this.#cache.clear();
    this.#cache.set(host, { address, untilMs: Date.now() + cacheMs });
  }
}

function toPeer(target: NameTarget, address: string): TargetPeer {
  const { protocol, port, tls, keepsAlive, local } = target;
  return {
    ...{ protocol, address, port },
    ...(tls !== undefined && { tls }),
    ...(keepsAlive !== undefined && { keepsAlive }),
    ...(local !== undefined && { local }),
  };
}
