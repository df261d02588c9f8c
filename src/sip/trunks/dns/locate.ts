// Finds the servers behind a host name (RFC 3263, section 4): NAPTR says which transports the
// domain offers, SRV names the servers of a transport, and A and AAAA records are their addresses.

import type { GatewayAddress } from '../gateway-name.ts';
import type { DnsAnswer, DnsClient, SrvRecord } from './dns-client.ts';

type Transport = GatewayAddress['transport'];

/** A server with its addresses. `priority` and `weight` are those of RFC 2782. */
export type Server = {
  readonly priority: number;
  readonly weight: number;
  /** Default: the transport's own port. */
  readonly port?: number;
  readonly addresses: readonly string[];
};

/** Servers of one transport. */
export type Service = { readonly transport: Transport; readonly servers: readonly Server[] };

export type Location =
  | {
      readonly kind: 'found';
      /** Never empty. In the order in which to try them. */
      readonly services: readonly [Service, ...Service[]];
      readonly ttlMs: number;
      /**
       * False if a query failed that might have named other servers. An earlier complete answer is
       * then the better one.
       */
      readonly isComplete: boolean;
    }
  | { readonly kind: 'absent' }
  | { readonly kind: 'failed'; readonly reason: string };

export type Place = {
  readonly host: string;
  readonly port?: number | undefined;
  /** Default: NAPTR and SRV choose the transport, or else it's UDP. */
  readonly transport?: Transport | undefined;
  /** Over TLS, the engine needs the name in place of an address, to verify a certificate. */
  readonly isTlsByName: boolean;
};

const serviceNames: Readonly<Record<Transport, string>> = {
  udp: '_sip._udp.',
  tcp: '_sip._tcp.',
  tls: '_sips._tcp.',
};

/** An answer of many names must not cause as many queries. */
const maxServers = 16;

/** Looks a place up. The caller handles literal addresses. */
export async function locate(
  dns: DnsClient,
  { host, port, transport }: Omit<Place, 'isTlsByName'>,
): Promise<Location> {
  // A port in the URI rules out SRV (section 4.2), and with it NAPTR, which leads to SRV records.
  if (port !== undefined) {
    const server = { priority: 0, weight: 0, port, host };
    return located(dns, [{ transport: transport ?? 'udp', records: [server] }], Infinity, true);
  }
  if (transport !== undefined) {
    const answer = await dns.srv(serviceNames[transport] + host);
    return fromSrv(dns, host, [{ transport, answer }], answer.kind !== 'failed');
  }
  return byNaptr(dns, host);
}

/** The services of all transports twice, e.g. at two sites. */
const maxServices = 6;

async function byNaptr(dns: DnsClient, host: string): Promise<Location> {
  const naptr = await dns.naptr(host);
  const records = naptr.kind === 'found' ? naptr.records : [];
  if (records.length > 0) {
    const answers = await Promise.all(
      records.slice(0, maxServices).map(async ({ transport, replacement }) => ({
        transport,
        answer: await dns.srv(replacement),
      })),
    );
    return fromSrv(dns, host, answers, true);
  }
  // Without NAPTR, a client asks for the SRV records of each transport that it has. For `sip:`
  // these are `_sip`, so never TLS (section 4.1).
  const answers = await Promise.all(
    (['udp', 'tcp'] as const).map(async (transport) => ({
      transport,
      answer: await dns.srv(serviceNames[transport] + host),
    })),
  );
  return fromSrv(dns, host, answers, naptr.kind !== 'failed');
}

type NamedServer = Omit<SrvRecord, 'port'> & { readonly port?: number };
type NamedService = { readonly transport: Transport; readonly records: readonly NamedServer[] };

async function fromSrv(
  dns: DnsClient,
  host: string,
  answers: readonly { readonly transport: Transport; readonly answer: DnsAnswer<SrvRecord> }[],
  isComplete: boolean,
): Promise<Location> {
  const found = answers.flatMap(({ transport, answer }) =>
    answer.kind === 'found' ? [{ transport, records: answer.records, ttlMs: answer.ttlMs }] : [],
  );
  const hasFailed = answers.some(({ answer }) => answer.kind === 'failed');
  const isWhole = isComplete && !hasFailed;
  if (found.length > 0) {
    const ttlMs = Math.min(...found.map((service) => service.ttlMs));
    return located(dns, found, ttlMs, isWhole);
  }
  // Without SRV records, the host's own addresses are the servers, at the default port.
  const transport = answers.length === 1 ? (answers[0]?.transport ?? 'udp') : 'udp';
  const itself = { transport, records: [{ priority: 0, weight: 0, host }] };
  return located(dns, [itself], Infinity, isWhole);
}

async function located(
  dns: DnsClient,
  services: readonly NamedService[],
  srvTtlMs: number,
  isComplete: boolean,
): Promise<Location> {
  const hosts = [
    ...new Set(services.flatMap(({ records }) => records.map(({ host }) => host))),
  ].slice(0, maxServers);
  const answers = new Map(
    await Promise.all(hosts.map(async (host) => [host, await dns.addresses(host)] as const)),
  );
  const [first, ...others] = services.flatMap(({ transport, records }) => {
    const servers = records.flatMap(({ host, ...record }): Server[] => {
      const answer = answers.get(host);
      return answer?.kind === 'found' ? [{ ...record, addresses: answer.records }] : [];
    });
    return servers.length === 0 ? [] : [{ transport, servers }];
  });
  const all = [...answers.values()];
  const failure = all.find((answer) => answer.kind === 'failed');
  if (first === undefined) {
    // A failed SRV query may have named servers, so the name isn't known to be absent.
    const reason = 'the look-up of its servers failed';
    return failure ?? (isComplete ? { kind: 'absent' } : { kind: 'failed', reason });
  }
  const ttls = all.flatMap((answer) => (answer.kind === 'found' ? [answer.ttlMs] : []));
  return {
    kind: 'found',
    services: [first, ...others],
    ttlMs: Math.min(srvTtlMs, ...ttls),
    isComplete: isComplete && failure === undefined,
  };
}
