import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createDnsClient } from '../../src/sip/trunks/dns/dns-client.ts';
import { createHopFinder } from '../../src/sip/trunks/dns/next-hops.ts';
import { type DnsRecord, DnsServer } from '../support/dns-server.ts';
import { seeded } from './seeded-dice.ts';

const name = 'carrier.test';
const srvName = `_sip._udp.${name}`;
const a = (address: string, ttlS = 60): DnsRecord => ({ type: 'A', address, ttlS });
const srv = (target: string, more: Partial<{ priority: number; weight: number; port: number }>) =>
  ({ type: 'SRV', priority: 1, weight: 1, port: 5_060, target, ...more }) satisfies DnsRecord;

let dns: DnsServer;
let nowMs: number;

beforeEach(async () => {
  dns = await DnsServer.start();
  nowMs = 0;
});
afterEach(() => dns[Symbol.asyncDispose]());

function finder(more: { readonly dice?: () => number; readonly timeoutMs?: number } = {}) {
  return createHopFinder({
    dns: createDnsClient({ servers: [dns.address] }),
    timeoutMs: 1_000,
    now: () => nowMs,
    dice: () => 0,
    ...more,
  });
}

const byTransport = { host: name, transport: 'udp', isTlsByName: true } as const;
const byName = { host: name, isTlsByName: true } as const;

/** Returns the hops as `host:port;transport`, or the reason. */
async function found(
  hops: ReturnType<typeof finder>,
  place: Parameters<ReturnType<typeof finder>['find']>[0] = byTransport,
): Promise<readonly string[]> {
  const result = await hops.find(place);
  return result.kind === 'unresolved'
    ? [result.reason]
    : result.hops.map(({ host, port, transport }) => `${host}:${port};${transport}`);
}

describe('the order of addresses', () => {
  test('weights share the calls within a priority (RFC 2782)', async () => {
    dns.set(srvName, [srv('a.test', { weight: 3 }), srv('b.test', { weight: 1 })]);
    dns.set('a.test', [a('192.0.2.1')]);
    dns.set('b.test', [a('192.0.2.2')]);
    const hops = finder({ dice: seeded(7) });

    let first = 0;
    for (let call = 0; call < 400; call += 1) {
      if ((await found(hops))[0]?.startsWith('192.0.2.1') === true) first += 1;
    }

    expect(first).toBeGreaterThan(260);
    expect(first).toBeLessThan(340);
    // One question for all of them.
    expect(dns.asked('SRV')).toEqual([srvName]);
  });

  test('IPv4 before IPv6, and at most eight', async () => {
    const many = Array.from({ length: 6 }, (_, index) => a(`192.0.2.${index + 1}`));
    dns.set(name, [...many, { type: 'AAAA', address: '2001:db8::1' }]);
    dns.set(
      'b.test',
      many.map((_, index) => a(`192.0.2.${index + 101}`)),
    );
    expect((await found(finder(), { ...byTransport, port: 5_070 })).at(-1)).toBe(
      '2001:db8::1:5070;udp',
    );

    dns.set(srvName, [srv(name, {}), srv('b.test', {})]);
    expect(await found(finder())).toHaveLength(8);
  });

  test('a hop that did not respond comes last for a minute', async () => {
    dns.set(name, [a('192.0.2.1'), a('192.0.2.2')]);
    const hops = finder();
    const place = { ...byTransport, port: 5_070 };
    expect(await found(hops, place)).toEqual(['192.0.2.1:5070;udp', '192.0.2.2:5070;udp']);

    hops.avoid({ host: '192.0.2.1', port: 5_070, transport: 'udp' });
    expect(await found(hops, place)).toEqual(['192.0.2.2:5070;udp', '192.0.2.1:5070;udp']);
    nowMs += 60_000;
    expect(await found(hops, place)).toEqual(['192.0.2.1:5070;udp', '192.0.2.2:5070;udp']);
  });

  test('NAPTR chooses the transport; TLS gets the name if the engine verifies it', async () => {
    dns.set(name, [
      { type: 'NAPTR', order: 1, preference: 1, service: 'SIPS+D2T', replacement: 'tls.test' },
      { type: 'NAPTR', order: 2, preference: 1, service: 'sip+d2t', replacement: 'tcp.test' },
    ]);
    dns.set('tls.test', [srv('a.test', { port: 5_061 })]);
    dns.set('tcp.test', [srv('a.test', { port: 5_062 })]);
    dns.set('a.test', [a('192.0.2.1')]);

    expect(await found(finder(), byName)).toEqual([
      'carrier.test:undefined;tls',
      '192.0.2.1:5062;tcp',
    ]);
    expect(await found(finder(), { ...byName, isTlsByName: false })).toEqual([
      '192.0.2.1:5061;tls',
      '192.0.2.1:5062;tcp',
    ]);
  });
});

describe('answers are kept', () => {
  test('for their TTL, but at least five seconds', async () => {
    const place = { ...byTransport, port: 5_060 };
    dns.set(name, [a('192.0.2.1', 0)]);
    const hops = finder();
    await found(hops, place);
    dns.set(name, [a('192.0.2.2', 20)]);

    nowMs = 4_999;
    expect(await found(hops, place)).toEqual(['192.0.2.1:5060;udp']);
    nowMs = 5_000;
    expect(await found(hops, place)).toEqual(['192.0.2.2:5060;udp']);
    dns.set(name, [a('192.0.2.3')]);
    nowMs = 24_999;
    expect(await found(hops, place)).toEqual(['192.0.2.2:5060;udp']);
    nowMs = 25_000;
    expect(await found(hops, place)).toEqual(['192.0.2.3:5060;udp']);
  });

  test('for up to an hour while the server fails, and not if the name is gone', async () => {
    const place = { ...byTransport, port: 5_060 };
    dns.set(name, [a('192.0.2.1', 60)]);
    const hops = finder();
    await found(hops, place);

    dns.behave('*', 'servfail');
    nowMs = 60_000 + 3_599_999;
    expect(await found(hops, place)).toEqual(['192.0.2.1:5060;udp']);
    nowMs += 10_001;
    expect(await found(hops, place)).toEqual(['ESERVFAIL']);

    dns.behave('*', undefined);
    nowMs += 10_001;
    expect(await found(hops, place)).toEqual(['192.0.2.1:5060;udp']);
    dns.remove(name);
    nowMs += 60_001;
    expect(await found(hops, place)).toEqual(['no such name']);
  });

  test('failed SRV look-ups do not replace known servers by the name itself', async () => {
    dns.set(srvName, [srv('a.test', {})]);
    dns.set('a.test', [a('192.0.2.1')]);
    dns.set(name, [a('192.0.2.99')]);
    const hops = finder();
    expect(await found(hops)).toEqual(['192.0.2.1:5060;udp']);

    dns.behave(`SRV ${srvName}`, 'servfail');
    nowMs = 60_000;
    expect(await found(hops)).toEqual(['192.0.2.1:5060;udp']);
    // Somebody who has never had a better answer gets the name's own addresses.
    expect(await found(finder())).toEqual(['192.0.2.99:undefined;udp']);
  });
});

describe('a DNS server that fails in part', () => {
  test('keeps known servers if the SRV look-up fails and the name itself has no address', async () => {
    dns.set(srvName, [srv('a.test', {})]);
    dns.set('a.test', [a('192.0.2.1')]);
    const hops = finder();
    expect(await found(hops)).toEqual(['192.0.2.1:5060;udp']);

    dns.behave(`SRV ${srvName}`, 'servfail');
    nowMs = 60_000;
    expect(await found(hops)).toEqual(['192.0.2.1:5060;udp']);
    const [reason] = await found(finder());
    expect(reason).not.toBe('no such name');
  });

  test('answers by address alone if it drops the questions for NAPTR and SRV', async () => {
    dns.set(name, [a('192.0.2.1')]);
    dns.behave(`NAPTR ${name}`, 'silent');
    dns.behave(`SRV ${srvName}`, 'silent');
    dns.behave(`SRV _sip._tcp.${name}`, 'silent');

    expect(await found(finder({ timeoutMs: 5_000 }), byName)).toEqual(['192.0.2.1:undefined;udp']);
  });

  test('servers with the same address are tried once', async () => {
    dns.set(srvName, [srv('a.test', {}), srv('b.test', { priority: 2 })]);
    dns.set('a.test', [a('192.0.2.1')]);
    dns.set('b.test', [a('192.0.2.1'), a('192.0.2.2')]);

    expect(await found(finder())).toEqual(['192.0.2.1:5060;udp', '192.0.2.2:5060;udp']);
  });
});

describe('hostile answers', () => {
  test.each<[string, DnsRecord]>([
    ['a target that is an address', srv('192.0.2.7', {})],
    ['port 0', srv('a.test', { port: 0 })],
    ['no service (`.`)', srv('.', {})],
    ['a target with spaces', srv('a b.test', {})],
    ['a target with CR and LF', srv('a\r\nVia: x.test', {})],
  ])('SRV with %s is ignored', async (_name, record) => {
    dns.set('a.test', [a('192.0.2.1')]);
    dns.set('b.test', [a('192.0.2.2')]);
    dns.set(srvName, [record, srv('b.test', { priority: 9, port: 5_099 })]);

    expect(await found(finder())).toEqual(['192.0.2.2:5099;udp']);
  });

  test('NAPTR with a regular expression, other flags or a bad name is ignored', async () => {
    const record = { type: 'NAPTR', order: 1, preference: 1, service: 'SIP+D2U' } as const;
    dns.set(name, [
      { ...record, regexp: '!.*!sip:x@evil.test!', replacement: 'x.test' },
      { ...record, flags: 'u', replacement: 'x.test' },
      { ...record, replacement: 'x y.test' },
      a('192.0.2.5'),
    ]);

    expect(await found(finder(), byName)).toEqual(['192.0.2.5:undefined;udp']);
    expect(dns.asked('SRV')).toEqual([`_sip._udp.${name}`, `_sip._tcp.${name}`]);
  });

  test('an answer of many servers causes a bounded number of questions', async () => {
    dns.set(
      srvName,
      Array.from({ length: 25 }, (_, index) => srv(`n${index}.test`, { priority: index })),
    );
    dns.set('n3.test', [a('192.0.2.1')]);

    expect(await found(finder())).toEqual(['192.0.2.1:5060;udp']);
    expect(dns.asked('A')).toHaveLength(16);
  });

  test.each([
    ['nothing but zeros', Buffer.alloc(300)],
    ['one byte', Buffer.from([0x85])],
    [
      'a name that points to itself',
      Buffer.from('858000010001000000000000c00c002100010000003c0004c00cc00c', 'hex'),
    ],
  ])('%s is no answer', async (_name, bytes) => {
    dns.behave('*', bytes);

    const [reason] = await found(finder({ timeoutMs: 200 }));

    expect(reason).toMatch(/^E[A-Z]+$|no answer within the time-out|no such name/);
  });
});
