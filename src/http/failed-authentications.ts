// Who tries credentials, and fails, is told to slow down. Good ones are always taken, so that an attacker cannot lock out the apps
// that share an address with one; what is limited is how often an attacker learns that a guess was wrong.

import ipaddr from 'ipaddr.js';
import { LRUCache } from 'lru-cache';

/** A dialer whose secret was changed fails some times before its operator looks. */
const burst = 60;
/** And then one answer a second. */
const intervalMs = 1_000;
/** A few MB. Who has more addresses than that pushes others out, and gains a burst for each. */
const maxClients = 10_000;

export type FailedAuthentications = {
  /** Of one more failure: for how long the client should wait; undefined: it has not failed too often. */
  failed(address: string | undefined): number | undefined;
};

/** Counts in this process alone, and by a monotonic clock. */
export function createFailedAuthentications(
  nowMs: () => number = () => performance.now(),
): FailedAuthentications {
  /** When each client will have paid for its failures, the one that failed last at the end (GCRA, ITU-T I.371). */
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

/** An IPv6 host has a /64 to choose addresses from (RFC 4291 section 2.5.4). What a proxy wrote may be no address at all. */
function clientOf(address: string | undefined): string {
  if (address === undefined || !ipaddr.isValid(address)) return 'unknown';
  const parsed = ipaddr.process(address);
  return parsed.kind() === 'ipv4'
    ? parsed.toString()
    : (parsed as ipaddr.IPv6).parts.slice(0, 4).join(':');
}
