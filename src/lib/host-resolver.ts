// Resolves receivers' host names. One receiver's slow name server must not delay other receivers,
// which would happen with the system resolver (getaddrinfo), because each pending look-up blocks
// one of Node's four pool threads.

import { type LookupAddress, lookup, promises } from 'node:dns';
import { takeTurns } from '../lib/turns.ts';

/** Resolves a host name to all its addresses. */
export type Resolver = (hostname: string) => Promise<readonly LookupAddress[]>;

/**
 * Time-out for the first try. The second try has a longer time-out, but both tries together take
 * much less time than a delivery attempt may take.
 */
const queryTimeoutMs = 1_500;
const queryTries = 2;
/**
 * Limits concurrent look-ups in the system resolver, which keeps pool threads free for other work.
 */
const maxSystemLookups = 2;
/** If this many names are waiting for the system resolver, any further look-up fails. */
const maxWaiting = 500;

/**
 * With these codes, the name servers don't know the name or can't be reached, but the system
 * resolver may still know the name.
 */
const fallBackCodes = new Set(['ENOTFOUND', 'ENODATA', 'ECONNREFUSED', 'ENONAME', 'ENOTIMP']);

/**
 * Creates a resolver that first queries the name servers over its own sockets. If that fails, it
 * falls back to the system resolver, which also knows /etc/hosts and search domains.
 *
 * @param nameServers defaults to the system's name servers
 * @param askSystem defaults to getaddrinfo
 */
export function createHostResolver(
  nameServers?: readonly string[],
  askSystem: SystemLookup = systemLookup,
): Resolver {
  const resolver = new promises.Resolver({ timeout: queryTimeoutMs, tries: queryTries });
  if (nameServers !== undefined) resolver.setServers(nameServers);
  const turns = takeTurns(
    { running: maxSystemLookups, waiting: maxWaiting },
    () => new Error('too many names wait for the resolver'),
  );
  const system: SystemLookup = (hostname) => turns(() => askSystem(hostname));
  return async (hostname) => {
    // Queries for `localhost` must never reach a name server (RFC 6761).
    const isLocal = /(^|\.)localhost\.?$/i.test(hostname);
    return isLocal ? await system(hostname) : await resolve(resolver, system, hostname);
  };
}

type SystemLookup = (hostname: string) => Promise<LookupAddress[]>;

async function resolve(
  resolver: promises.Resolver,
  system: SystemLookup,
  hostname: string,
): Promise<LookupAddress[]> {
  const [v4, v6] = await Promise.allSettled([
    resolver.resolve4(hostname),
    resolver.resolve6(hostname),
  ]);
  const addresses = [...toAddresses(v4, 4), ...toAddresses(v6, 6)];
  if (addresses.length > 0) return addresses;
  const errors = [v4, v6].flatMap((answer) =>
    answer.status === 'rejected' ? [asError(answer.reason)] : [],
  );
  // If a name server doesn't answer us, it would block the system resolver as well.
  const blocking = errors.find((error) => !fallBackCodes.has(error.code ?? ''));
  if (blocking !== undefined) throw blocking;
  return await system(hostname);
}

function toAddresses(answer: PromiseSettledResult<string[]>, family: 4 | 6): LookupAddress[] {
  return answer.status === 'fulfilled' ? answer.value.map((address) => ({ address, family })) : [];
}

function systemLookup(hostname: string): Promise<LookupAddress[]> {
  return new Promise((resolved, rejected) => {
    lookup(hostname, { all: true }, (error, addresses) => {
      if (error === null) resolved(addresses);
      else rejected(error);
    });
  });
}

function asError(error: unknown): NodeJS.ErrnoException {
  return error instanceof Error ? error : new Error('name not resolved', { cause: error });
}
