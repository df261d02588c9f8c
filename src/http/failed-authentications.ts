// Slows down clients that fail to authenticate. Good credentials are always accepted, so that an
// attacker cannot lock out apps that share an address with the attacker. The limit applies to how
// often an attacker learns that a guess was wrong.

import ipaddr from 'ipaddr.js';
import { LRUCache } from 'lru-cache';

/**
 * Failures that are answered at once. A dialer with an outdated secret fails some times before its
 * operator notices.
 */
const burst = 60;
/** After the burst, one failure is answered per interval. */
const intervalMs = 1_000;
/**
 * Takes a few MB. A client with more addresses than this pushes others out, and gains a burst for
 * each of its addresses.
 */
const maxClients = 10_000;

export type FailedAuthentications = {
  /**
   * Counts a failure.
   *
   * @returns the seconds that the client should wait; undefined if it has not failed too often
   */
  failed(address: string | undefined): number | undefined;
};

/** Counts failures in this process only, by a monotonic clock. */
export function createFailedAuthentications(
  nowMs: () => number = () => performance.now(),
): FailedAuthentications {
  /**
   * For each client, the theoretical arrival time of the GCRA (ITU-T I.371). The client that failed
   * last is at the end.
   */
  const paidAtMs = new LRUCache<string, number>({ max: maxClients });
  return {
    failed(address) {
      const client = clientOf(address);
      const now = nowMs();
      const paid = Math.max(paidAtMs.get(client) ?? now, now);
      const earlyMs = paid - now - (burst - 1) * intervalMs;
      paidAtMs.set(client, earlyMs > 0 ? paid : paid + intervalMs);
      return earlyMs > 0 ? Math.ceil(earlyMs / 1_000) : undefined;
    },
  };
}

/**
 * Returns the IPv4 address, or the /64 prefix of an IPv6 address: a host may choose among its
 * addresses (RFC 4291 section 2.5.4). A proxy may have written something that is not an address.
 */
function clientOf(address: string | undefined): string {
  if (address === undefined || !ipaddr.isValid(address)) return 'unknown';
  const parsed = ipaddr.process(address);
  return parsed.kind() === 'ipv4'
    ? parsed.toString()
    : (parsed as ipaddr.IPv6).parts.slice(0, 4).join(':');
}
