// Resolves the host names of receivers. If one receiver has a slow name server, that must not delay
// the other receivers. The system's resolver (getaddrinfo) would do that, because each pending name
// blocks one of Node's four pool threads.

import { type LookupAddress, lookup, promises } from 'node:dns';
import { takeTurns } from '../lib/turns.ts';

/** Returns every address of a name. */
export type Resolver = (hostname: string) => Promise<readonly LookupAddress[]>;

/**
 * Time limit of the first try; the second one is longer. Together they stay well below the time-out
 * of a delivery attempt.
 */
const queryTimeoutMs = 1_500;
const queryTries = 2;
/**
 * Maximum number of simultaneous look-ups in the system's resolver, which leaves pool threads for
 * other work.
 */
const maxSystemLookups = 2;
/** Maximum number of names that wait for the system's resolver. Further names are refused. */
const maxWaiting = 500;

/**
 * Errors that mean that the name servers do not know the name or cannot be reached. The system's
 * resolver may still know the name.
 */
const fallBackCodes = new Set(['ENOTFOUND', 'ENODATA', 'ECONNREFUSED', 'ENONAME', 'ENOTIMP']);

/**
 * Creates a resolver that asks the name servers first, over its own sockets, and then the system,
 * which also knows /etc/hosts and search domains.
 *
 * @param nameServers default: those of the system
 * @param askSystem default: getaddrinfo
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
    // A name server must never be asked for `localhost` (RFC 6761).
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
  // A name server that does not answer would block the system's resolver as well.
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
