// Resolves receivers' names without letting a slow name server of one of them hold up the others: the system's resolver
// (getaddrinfo) blocks one of Node's four pool threads for each name that it waits for.

import { type LookupAddress, lookup, promises } from 'node:dns';
import { takeTurns } from '../lib/turns.ts';

/** Every address of a name. */
export type Resolver = (hostname: string) => Promise<readonly LookupAddress[]>;

/** For one try; the second one takes longer. Together well below the time-out of an attempt. */
const queryTimeoutMs = 1_500;
const queryTries = 2;
/** Names at the system's resolver at once: leaves pool threads to the rest. */
const maxSystemLookups = 2;
/** More that wait for it are refused. */
const maxWaiting = 500;

/** Answers that only say that the name servers do not know the name, or that there are none. */
const tryTheSystem = new Set(['ENOTFOUND', 'ENODATA', 'ECONNREFUSED', 'ENONAME', 'ENOTIMP']);

/**
 * Asks the name servers first, over sockets of its own; then the system, which also knows /etc/hosts and search domains.
 * `nameServers`, `askSystem`: other than the system's.
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
    // RFC 6761: never asked of a name server.
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
  // A name server that does not answer would keep the system waiting as well.
  const blocking = errors.find((error) => !tryTheSystem.has(error.code ?? ''));
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
