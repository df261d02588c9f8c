// Slows down clients that fail to authenticate. Valid credentials are always accepted, so an
// attacker can't lock out apps behind the same address. All that the limit affects is how often an
// attacker learns that a guess was wrong.

import ipaddr from 'ipaddr.js';
import { LRUCache } from 'lru-cache';
import { upTo } from '../lib/growing-cache.ts';

/**
 * This many failures get a 401 before we respond with the first 429. A dialer with an outdated
 * secret usually fails a few times before its operator notices.
 */
const burst = 60;
/** After the burst, we send a 401 for one failure per interval. */
const intervalMs = 1_000;
/**
 * Limits memory to a few MB. An attacker with more addresses than this can evict other clients, and
 * gains one burst per address.
 */
const maxClients = 10_000;

export type FailedAuthentications = {
  /**
   * Counts a failure.
   *
   * @returns the seconds that the client should wait, or undefined if it's within the limit
   */
  failed(address: string | undefined): number | undefined;
};

/** Counts failures in this process only. `nowMs` must be monotonic. */
export function createFailedAuthentications(
  nowMs: () => number = () => performance.now(),
): FailedAuthentications {
  /** The theoretical arrival time (GCRA, ITU-T I.371) of each client's next failure. */
  const arrivals = new LRUCache<string, number>(upTo(maxClients));
  return {
    failed(address) {
      const client = clientKey(address);
      const now = nowMs();
      const arrival = Math.max(arrivals.get(client) ?? now, now);
      const earlyMs = arrival - now - (burst - 1) * intervalMs;
      arrivals.set(client, earlyMs > 0 ? arrival : arrival + intervalMs);
      return earlyMs > 0 ? Math.ceil(earlyMs / 1_000) : undefined;
    },
  };
}

/**
 * Returns the IPv4 address, or the /64 prefix of an IPv6 address, because a host may choose any
 * address within that prefix (RFC 4291 section 2.5.4). Note that a proxy may have passed on
 * something that isn't an address at all.
 */
function clientKey(address: string | undefined): string {
  if (address === undefined || !ipaddr.isValid(address)) return 'unknown';
  const parsed = ipaddr.process(address);
  return parsed.kind() === 'ipv4'
    ? parsed.toString()
    : (parsed as ipaddr.IPv6).parts.slice(0, 4).join(':');
}
