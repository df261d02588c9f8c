// Host names to addresses, with a small cache, so that the ACK and the BYE of a call leave in the order they were asked for.

import { lookup } from 'node:dns/promises';
import { within } from '../../../lib/within.ts';
import type { SipPeer } from './sip-peer.ts';
import type { Target } from './sip-target.ts';

type NameTarget = Extract<Target, { kind: 'name' }>;

const cacheMs = 30_000;
/** An application calls a handful of trunks by name. */
const maxCached = 1_000;
/** Lookups run in libuv's few threads: more at once only queue there. */
const maxPending = 256;
/** A resolver that does not answer is a DNS error, well within timer B. */
const timeoutMs = 5_000;

export class NameResolver {
  readonly #family: 4 | 6;
  readonly #cache = new Map<string, { readonly address: string; readonly untilMs: number }>();
  readonly #pending = new Map<string, Promise<string | undefined>>();

  constructor(family: 4 | 6) {
    this.#family = family;
  }

  /** `tell` runs at once for a cached name. */
  resolve(target: NameTarget, tell: (peer: SipPeer | undefined) => void): void {
    const cached = this.#cache.get(target.host);
    if (cached !== undefined && cached.untilMs > Date.now()) {
      tell(toPeer(target, cached.address));
      return;
    }
    const pending = this.#pending.get(target.host) ?? this.#start(target.host);
    if (pending === undefined) {
      tell(undefined);
      return;
    }
    pending.then(
      (address) => tell(address === undefined ? undefined : toPeer(target, address)),
      () => tell(undefined),
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

function toPeer(target: NameTarget, address: string): SipPeer {
  return { protocol: target.protocol, address, port: target.port };
}
