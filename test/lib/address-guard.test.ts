import type { LookupAddress } from 'node:dns';
import { describe, expect, test } from 'vitest';
import { createAddressGuard } from '../../src/lib/address-guard.ts';
import { createSender } from '../../src/notifier/http-sender.ts';
import { forSuite } from '../support/opened.ts';
import { startReceiver } from '../support/receiver.ts';

const refused = [
  ['loopback', 'http://127.0.0.1/'],
  ['loopback, another', 'http://127.255.255.254/'],
  ['loopback in hexadecimal', 'http://0x7f.0.0.1/'],
  ['loopback as one number', 'http://2130706433/'],
  ['loopback as one hexadecimal number', 'http://0x7f000001/'],
  ['loopback in octal', 'http://0177.0.0.1/'],
  ['loopback, short', 'http://127.1/'],
  ['loopback in full-width digits', 'http://１２７.０.０.１/'],
  ['loopback with a trailing dot', 'http://127.0.0.1./'],
  ['this network', 'http://0.0.0.0/'],
  ['this network, short', 'http://0/'],
  ['private 10/8', 'http://10.0.0.1/'],
  ['private 172.16/12', 'http://172.31.255.255/'],
  ['private 192.168/16', 'http://192.168.1.1/'],
  ['shared, carrier-grade NAT', 'http://100.64.0.1/'],
  ['link-local', 'http://169.254.1.1/'],
  ['cloud metadata', 'http://169.254.169.254/latest/meta-data/'],
  ['Alibaba metadata', 'http://100.100.100.200/'],
  ['protocol assignments (Oracle metadata)', 'http://192.0.0.192/'],
  ['documentation', 'http://192.0.2.1/'],
  ['benchmarking', 'http://198.18.0.1/'],
  ['6to4 relay', 'http://192.88.99.1/'],
  ['multicast', 'http://224.0.0.1/'],
  ['reserved', 'http://240.0.0.1/'],
  ['broadcast', 'http://255.255.255.255/'],
  ['IPv6 loopback', 'http://[::1]/'],
  ['IPv6 unspecified', 'http://[::]/'],
  ['v4-mapped loopback', 'http://[::ffff:127.0.0.1]/'],
  ['v4-mapped private, hexadecimal', 'http://[::ffff:0a00:0001]/'],
  ['v4-compatible', 'http://[::127.0.0.1]/'],
  ['v4-translated', 'http://[::ffff:0:127.0.0.1]/'],
  ['NAT64', 'http://[64:ff9b::7f00:1]/'],
  ['NAT64 to a public address', 'http://[64:ff9b::8.8.8.8]/'],
  ['local-use NAT64', 'http://[64:ff9b:1::7f00:1]/'],
  ['6to4', 'http://[2002:7f00:1::]/'],
  ['Teredo', 'http://[2001:0:4136:e378::]/'],
  ['unique local', 'http://[fd00:ec2::254]/'],
  ['IPv6 link-local', 'http://[fe80::1]/'],
  ['site-local', 'http://[fec0::1]/'],
  ['IPv6 multicast', 'http://[ff02::1]/'],
  ['discard', 'http://[100::1]/'],
  ['IPv6 documentation', 'http://[2001:db8::1]/'],
  ['IPv6 documentation, new', 'http://[3fff::1]/'],
  ['IPv6 benchmarking', 'http://[2001:2::1]/'],
  ['segment routing', 'http://[5f00::1]/'],
] as const;

const allowed = [
  ['a public IPv4 address', 'http://93.184.215.14/'],
  ['a public IPv6 address', 'http://[2606:2800:21f:cb07:6820:80da:af6b:8b2c]/'],
  ['a public address as v4-mapped', 'http://[::ffff:93.184.215.14]/'],
  ['a name, which is judged when it is resolved', 'http://example.com/'],
] as const;

const mayBeSent = () => true;

describe('the guard against requests to the inside', () => {
  const guard = createAddressGuard([]);

  test.each(refused)('refuses %s: %s', (_, url) => {
    expect(guard.isHostAllowed(new URL(url))).toBe(false);
  });

  test.each(allowed)('allows %s: %s', (_, url) => {
    expect(guard.isHostAllowed(new URL(url))).toBe(true);
  });

  test('allows listed networks, and no others', () => {
    const open = createAddressGuard(['127.0.0.0/8', '10.1.0.0/16', 'fd00::/8']);
    expect(open.isAddressAllowed('127.0.0.1')).toBe(true);
    expect(open.isAddressAllowed('::ffff:10.1.2.3')).toBe(true);
    expect(open.isAddressAllowed('fd12::1')).toBe(true);
    expect(open.isAddressAllowed('10.2.0.1')).toBe(false);
    expect(open.isAddressAllowed('::1')).toBe(false);
    expect(open.isAddressAllowed('64:ff9b::7f00:1')).toBe(false);
  });

  test('refuses text that is not an address', () => {
    for (const text of ['', 'localhost', '1.2.3.4.5', '::g', '127.0.0.1/8', 'fe80::1%lo']) {
      expect(guard.isAddressAllowed(text)).toBe(false);
    }
  });
});

describe('names that resolve to the inside', () => {
  const receiver = forSuite(startReceiver);

  async function sendTo(url: string, addresses: readonly string[], networks: readonly string[]) {
    const resolved: LookupAddress[] = addresses.map((address) => ({
      address,
      family: address.includes(':') ? 6 : 4,
    }));
    const guard = createAddressGuard(networks, () => Promise.resolve(resolved));
    const sender = createSender({
      guard,
      timeoutMs: 60_000,
      now: Date.now,
    });
    const result = await sender.send({ url, headers: {}, body: '{"sequence":1}', mayBeSent });
    await sender.close();
    return result;
  }

  test.each([
    ['loopback', ['127.0.0.1']],
    ['loopback beside a public address', ['93.184.215.14', '127.0.0.1']],
    ['IPv6 loopback', ['::1']],
    ['nothing', []],
  ])('are refused without a connection: %s', async (_, addresses) => {
    const result = await sendTo(`http://hooks.example:${receiver.port}/`, addresses, []);

    expect(result).toMatchObject({ kind: 'forbidden' });
    expect(receiver.received).toEqual([]);
  });

  test('are connected to at the address that was checked', async () => {
    const url = `http://hooks.example:${receiver.port}/`;

    expect(await sendTo(url, ['127.0.0.1'], ['127.0.0.0/8'])).toEqual({
      kind: 'response',
      status: 200,
    });
    expect(receiver.received[0]?.headers.host).toBe(`hooks.example:${receiver.port}`);
  });

  test('are also checked with the real resolver', async () => {
    const sender = createSender({
      guard: createAddressGuard([]),
      now: Date.now,
    });
    const url = `http://localhost:${receiver.port}/`;

    expect(await sender.send({ url, headers: {}, body: '{}', mayBeSent })).toMatchObject({
      kind: 'forbidden',
    });
    await sender.close();
  });

  test('count as forbidden if the headers cannot be written', async () => {
    const sender = createSender({
      guard: createAddressGuard(['127.0.0.0/8']),
      now: Date.now,
    });
    const headers = { 'x-bad': 'a\r\nb' };

    expect(await sender.send({ url: receiver.url, headers, body: '{}', mayBeSent })).toMatchObject({
      kind: 'forbidden',
    });
    await sender.close();
  });
});
