// Turns a gateway into the addresses to which a request may go, in the order in which to try them.
// Answers of DNS are kept for their TTL. If the DNS server fails, the last good answer is used for
// up to an hour, because a carrier's addresses rarely change and calls must not depend on every
// query. An address that didn't respond is tried last for a while, so that not every call waits for
// it.

import { isIP } from 'node:net';
import { LRUCache } from 'lru-cache';
import { upTo } from '../../../lib/growing-cache.ts';
import { within } from '../../../lib/within.ts';
import type { GatewayAddress } from '../gateway-name.ts';
import { type Dice, orderGateways } from '../gateway-order.ts';
import type { DnsClient } from './dns-client.ts';
import { type Location, locate, type Place, type Server } from './locate.ts';

/** Where to send a request: an address, or a name that the engine resolves itself. */
export type NextHop = GatewayAddress;

export type NextHops =
  | { readonly kind: 'found'; readonly hops: readonly [NextHop, ...NextHop[]] }
  | { readonly kind: 'unresolved'; readonly reason: string };

export type HopFinder = {
  /** Never rejects. */
  find(place: Place): Promise<NextHops>;
  /** Notes that a hop didn't respond. It's tried last for a while. */
  avoid(hop: NextHop): void;
  /** Notes that a hop responded. */
  welcome(hop: NextHop): void;
};

/** A call tries at most this many addresses of a gateway. Its ring time-out allows fewer. */
const maxHops = 8;
/** More than the gateways of any configuration (16 for each of 1,000 trunks, mostly addresses). */
const maxKept = 4_096;
/** How long an answer that DNS has no such name is believed. */
const absentMs = 10_000;
/** Pause after a failure of the DNS server. Without it, every call would wait for a time-out. */
const failedMs = 10_000;
/** How long the last good answer is used while DNS fails. */
const staleMs = 3_600_000;
/** If there's an earlier answer, a call doesn't wait longer than this for a newer one. */
const patienceMs = 300;
/** How long a hop that didn't respond is tried last. The INVITE to it took 32 s. */
const avoidedMs = 60_000;

type Found = Extract<Location, { kind: 'found' }>;
type Kept = { good?: Found; goodUntilMs: number; latest: Location; untilMs: number };

export function createHopFinder(options: {
  readonly dns: DnsClient;
  readonly timeoutMs: number;
  readonly dice?: Dice;
  /** Monotonic clock in milliseconds. Default: `performance.now`. */
  readonly now?: () => number;
}): HopFinder {
  const { dns, timeoutMs, dice = Math.random } = options;
  const now = options.now ?? (() => performance.now());
  const kept = new LRUCache<string, Kept>(upTo(maxKept));
  const pending = new Map<string, Promise<Location>>();
  const avoided = new LRUCache<string, number>(upTo(maxKept));

  const refresh = (key: string, place: Place): Promise<Location> => {
    const running = pending.get(key);
    if (running !== undefined) return running;
    const started = lookUp(dns, place, timeoutMs).then((location) => {
      pending.delete(key);
      kept.set(key, keep(kept.get(key), location, now()));
      return location;
    });
    pending.set(key, started);
    return started;
  };

  const locationOf = async (place: Place): Promise<Location> => {
    const key = `${place.host.toLowerCase()}|${place.port ?? ''}|${place.transport ?? ''}`;
    const known = kept.get(key);
    if (known !== undefined && now() < known.untilMs) return best(known, now());
    const good = known === undefined ? undefined : goodOf(known, now());
    const refreshed = refresh(key, place);
    if (good === undefined) {
      await refreshed;
    } else await within(refreshed, patienceMs);
    const current = kept.get(key);
    return current === undefined ? { kind: 'absent' } : best(current, now());
  };

  const isAvoided = (hop: NextHop) => (avoided.get(hopKey(hop)) ?? 0) > now();

  return {
    async find(place) {
      const literal = { host: place.host, transport: place.transport ?? 'udp' } as const;
      const isNamed = place.isTlsByName && place.transport === 'tls';
      if (isIP(place.host) !== 0 || place.host.toLowerCase() === 'localhost' || isNamed) {
        const hop = place.port === undefined ? literal : { ...literal, port: place.port };
        return { kind: 'found', hops: [hop] };
      }
      const location = await locationOf(place);
      if (location.kind !== 'found') return { kind: 'unresolved', reason: reasonOf(location) };
      const hops = location.services.flatMap(({ transport, servers }) => {
        if (place.isTlsByName && transport === 'tls') return [{ host: place.host, transport }];
        return inOrder(servers, dice).map((server) => ({ ...server, transport }));
      });
      // Several servers may have the same address. The first place in the order counts.
      const keys = hops.map(hopKey);
      const once = hops.filter((hop, index) => keys.indexOf(hopKey(hop)) === index);
      const sorted = [...once.filter((hop) => !isAvoided(hop)), ...once.filter(isAvoided)];
      const [first, ...others] = sorted.slice(0, maxHops);
      return first === undefined
        ? { kind: 'unresolved', reason: 'no address' }
        : { kind: 'found', hops: [first, ...others] };
    },
    avoid: (hop) => {
      avoided.set(hopKey(hop), now() + avoidedMs);
    },
    welcome: (hop) => {
      avoided.delete(hopKey(hop));
    },
  };
}

function hopKey({ host, port, transport }: NextHop): string {
  return `${host}|${port ?? ''}|${transport}`;
}

async function lookUp(dns: DnsClient, place: Place, timeoutMs: number): Promise<Location> {
  try {
    const location = await within(locate(dns, place), timeoutMs);
    return location ?? { kind: 'failed', reason: 'no answer within the time-out' };
  } catch {
    return { kind: 'failed', reason: 'internal error' };
  }
}

function keep(before: Kept | undefined, latest: Location, nowMs: number): Kept {
  const good = before === undefined ? undefined : goodOf(before, nowMs);
  if (latest.kind === 'found' && (latest.isComplete || good?.isComplete !== true)) {
    const untilMs = nowMs + (latest.isComplete ? latest.ttlMs : Math.min(latest.ttlMs, failedMs));
    return { good: latest, goodUntilMs: untilMs + staleMs, latest, untilMs };
  }
  // The name is gone. That's an answer, so the earlier one no longer applies.
  if (latest.kind === 'absent') return { goodUntilMs: 0, latest, untilMs: nowMs + absentMs };
  return {
    ...(good !== undefined && { good }),
    goodUntilMs: before?.goodUntilMs ?? 0,
    latest,
    untilMs: nowMs + failedMs,
  };
}

function goodOf({ good, goodUntilMs }: Kept, nowMs: number): Found | undefined {
  return nowMs < goodUntilMs ? good : undefined;
}

function best(kept: Kept, nowMs: number): Location {
  return goodOf(kept, nowMs) ?? kept.latest;
}

function reasonOf(location: Exclude<Location, Found>): string {
  return location.kind === 'absent' ? 'no such name' : location.reason;
}

/** Draws servers as RFC 2782 defines it, and shuffles the addresses of each within its family. */
function inOrder(servers: readonly Server[], dice: Dice): readonly Omit<NextHop, 'transport'>[] {
  return orderGateways(servers, () => true, dice).flatMap(({ port, addresses }) =>
    [4, 6].flatMap((family) =>
      orderGateways(
        addresses
          .filter((address) => isIP(address) === family)
          .map((host) => ({ host, priority: 0, weight: 1 })),
        () => true,
        dice,
      ).map(({ host }) => (port === undefined ? { host } : { host, port })),
    ),
  );
}
