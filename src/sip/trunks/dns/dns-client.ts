// Asks DNS for the records that RFC 3263 needs, and checks what it answers. Anybody on the path may
// forge an answer, so names and numbers are validated and lists are bounded. A failure is a value.

import { lookup, Resolver } from 'node:dns/promises';
import { isIP } from 'node:net';
import { within } from '../../../lib/within.ts';

export type DnsAnswer<Found> =
  | { readonly kind: 'found'; readonly records: readonly Found[]; readonly ttlMs: number }
  /** The name or the type doesn't exist (NXDOMAIN, NODATA). */
  | { readonly kind: 'absent' }
  /** No server answered, or the server answered with an error. */
  | { readonly kind: 'failed'; readonly reason: string };

export type SrvRecord = {
  readonly priority: number;
  readonly weight: number;
  readonly port: number;
  readonly host: string;
};

/** One way to reach a SIP service (RFC 3263, section 4.1). */
export type NaptrRecord = {
  readonly order: number;
  readonly preference: number;
  readonly transport: 'udp' | 'tcp' | 'tls';
  /** Name of the SRV records. */
  readonly replacement: string;
};

export type DnsClient = {
  naptr(domain: string): Promise<DnsAnswer<NaptrRecord>>;
  srv(name: string): Promise<DnsAnswer<SrvRecord>>;
  /** Returns IPv4 addresses before IPv6 addresses. */
  addresses(host: string): Promise<DnsAnswer<string>>;
};

/** A large carrier publishes about a dozen SRV records. A call never gets past a handful. */
const maxRecords = 32;
const maxAddresses = 8;

/**
 * Node doesn't report the TTL of NAPTR and SRV records, and the operating system reports none at
 * all. A minute is the TTL that carriers choose so that a fail-over by DNS takes effect soon.
 */
const assumedTtlMs = 60_000;
/** Even for a TTL of 0 we ask at most this often, because a trunk may start many calls a second. */
const minTtlMs = 5_000;
const maxTtlMs = 3_600_000;

/** c-ares waits this long for a server, and longer for each further attempt. */
const queryTimeoutMs = 1_000;
const queryTries = 2;
/**
 * NAPTR and SRV together must leave time for the addresses. A name in the hosts file has only
 * those, and some resolvers drop questions for other types.
 */
const serviceTimeoutMs = 1_500;

const services: Readonly<Record<string, NaptrRecord['transport']>> = {
  'SIP+D2U': 'udp',
  'SIP+D2T': 'tcp',
  'SIPS+D2T': 'tls',
};

export type DnsClientOptions = {
  /**
   * DNS servers, each as `address` or `address:port`. Default: the operating system's, in which
   * case host names are resolved by the operating system, so that its hosts file applies.
   */
  readonly servers?: readonly string[] | undefined;
  /** IP versions that the SIP engine can send over. Default: both. */
  readonly families?: readonly (4 | 6)[] | undefined;
};

export function createDnsClient({ servers, families = [4, 6] }: DnsClientOptions): DnsClient {
  const resolver = new Resolver({ timeout: queryTimeoutMs, tries: queryTries });
  if (servers !== undefined) resolver.setServers([...servers]);
  return {
    async naptr(domain) {
      const answer = await askBriefly(() => resolver.resolveNaptr(domain));
      return bounded(answer, assumedTtlMs, (record) => naptrRecord(record), byOrder);
    },
    async srv(name) {
      const answer = await askBriefly(() => resolver.resolveSrv(name));
      return bounded(answer, assumedTtlMs, (record) => srvRecord(record), byPriority);
    },
    addresses: (host) =>
      servers === undefined
        ? systemAddresses(host, families)
        : resolvedAddresses(resolver, host, families),
  };
}

type Raw<Value> = { readonly ok: true; readonly values: readonly Value[] } | DnsFailure;
type DnsFailure = { readonly ok: false; readonly code: string };

async function ask<Value>(query: () => Promise<readonly Value[]>): Promise<Raw<Value>> {
  try {
    return { ok: true, values: await query() };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'EUNKNOWN';
    return { ok: false, code };
  }
}

async function askBriefly<Value>(query: () => Promise<readonly Value[]>): Promise<Raw<Value>> {
  return (await within(ask(query), serviceTimeoutMs)) ?? { ok: false, code: 'ETIMEOUT' };
}

function bounded<Value, Found>(
  raw: Raw<Value>,
  ttlMs: number,
  read: (value: Value) => Found | undefined,
  compare: (one: Found, other: Found) => number,
): DnsAnswer<Found> {
  if (!raw.ok) return failureOf(raw);
  const records = raw.values.flatMap((value) => read(value) ?? []).sort(compare);
  return records.length === 0
    ? { kind: 'absent' }
    : { kind: 'found', records: records.slice(0, maxRecords), ttlMs: clamped(ttlMs) };
}

const absentCodes = new Set(['ENOTFOUND', 'ENODATA', 'ENONAME']);

function failureOf({ code }: DnsFailure): {
  readonly kind: 'absent' | 'failed';
  readonly reason: string;
} {
  return { kind: absentCodes.has(code) ? 'absent' : 'failed', reason: code };
}

function naptrRecord(record: {
  readonly flags: string;
  readonly service: string;
  readonly regexp: string;
  readonly replacement: string;
  readonly order: number;
  readonly preference: number;
}): NaptrRecord | undefined {
  const transport = services[record.service.toUpperCase()];
  // RFC 3263 only uses terminal records with a replacement, never a regular expression.
  if (transport === undefined || record.flags.toLowerCase() !== 's' || record.regexp !== '') {
    return undefined;
  }
  if (!isServiceName(record.replacement)) return undefined;
  const { order, preference, replacement } = record;
  return { order, preference, transport, replacement };
}

function srvRecord(record: {
  readonly priority: number;
  readonly weight: number;
  readonly port: number;
  readonly name: string;
}): SrvRecord | undefined {
  // A target of `.` means that the service isn't available here (RFC 2782). Node returns it empty.
  if (!isHostName(record.name) || record.port === 0) return undefined;
  const { priority, weight, port, name } = record;
  return { priority, weight, port, host: name };
}

const byOrder = (one: NaptrRecord, other: NaptrRecord): number =>
  one.order - other.order || one.preference - other.preference;
const byPriority = (one: SrvRecord, other: SrvRecord): number => one.priority - other.priority;

/** An address in place of a name isn't allowed (RFC 2782), and nobody has a reason to send one. */
function isHostName(name: string): boolean {
  return isIP(name) === 0 && /^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$/.test(name);
}

function isServiceName(name: string): boolean {
  return /^[A-Za-z0-9_]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$/.test(name);
}

async function systemAddresses(
  host: string,
  families: readonly (4 | 6)[],
): Promise<DnsAnswer<string>> {
  const answer = await ask(() => lookup(host, { all: true }));
  if (!answer.ok) return failureOf(answer);
  const found = families.flatMap((family) =>
    answer.values.filter((entry) => entry.family === family).map(({ address }) => address),
  );
  return addressAnswer(found, assumedTtlMs);
}

async function resolvedAddresses(
  resolver: Resolver,
  host: string,
  families: readonly (4 | 6)[],
): Promise<DnsAnswer<string>> {
  const answers = await Promise.all(
    families.map((family) =>
      ask(() =>
        family === 4
          ? resolver.resolve4(host, { ttl: true })
          : resolver.resolve6(host, { ttl: true }),
      ),
    ),
  );
  const found = answers.flatMap((answer) => (answer.ok ? answer.values : []));
  if (found.length === 0) {
    const failures = answers.flatMap((answer) => (answer.ok ? [] : failureOf(answer)));
    return failures.find(({ kind }) => kind === 'failed') ?? { kind: 'absent' };
  }
  const ttlMs = Math.min(...found.map(({ ttl }) => ttl)) * 1_000;
  return addressAnswer(
    found.map(({ address }) => address),
    ttlMs,
  );
}

function addressAnswer(found: readonly string[], ttlMs: number): DnsAnswer<string> {
  const records = [...new Set(found)].filter((address) => isIP(address) !== 0);
  return records.length === 0
    ? { kind: 'absent' }
    : { kind: 'found', records: records.slice(0, maxAddresses), ttlMs: clamped(ttlMs) };
}

function clamped(ttlMs: number): number {
  return Math.min(Math.max(ttlMs, minTtlMs), maxTtlMs);
}
