import { describe, expect, test } from 'vitest';
import { createRouter, type RouteRequest } from '../../src/sip/routing.ts';
import { builtInTrunk, loadTrunks, type Trunk } from '../../src/sip/trunks.ts';

function router(
  options: {
    trunk?: Partial<Trunk>;
    networks?: readonly string[];
    hosts?: Readonly<Record<string, readonly string[]>>;
  } = {},
) {
  const carrier: Trunk = {
    ...builtInTrunk('carrier', { host: 'gw.example', port: 5080, transport: 'udp' }),
    numberFormat: 'e164',
    ...options.trunk,
  };
  return createRouter({
    trunks: loadTrunks({ secrets: () => ({}), builtIn: [carrier] }),
    allowedNetworks: options.networks ?? [],
    resolveTimeoutMs: 50,
    resolveHost: async (host) => {
      if (host === 'slow.example') await new Promise(() => undefined);
      const addresses = options.hosts?.[host];
      if (addresses === undefined) throw new Error('ENOTFOUND');
      return addresses;
    },
  });
}

const tel = { kind: 'tel', number: '15551234567' } as const;
const sipTo = (host: string, port?: number) =>
  ({ kind: 'sip', user: 'bob', host, ...(port !== undefined && { port }) }) as const;

async function routeOf(request: Partial<RouteRequest>, options?: Parameters<typeof router>[0]) {
  const result = await router(options).resolve({ target: tel, caller: '100', ...request });
  if (!result.ok) throw new Error(result.reason);
  return result.route;
}

describe('routing at the edge', () => {
  test('tel: goes to the default trunk, or to the one that is named', () => {
    expect(router().plan(tel, undefined)).toEqual({ ok: true, trunk: 'carrier' });
    expect(router().plan(tel, 'carrier')).toEqual({ ok: true, trunk: 'carrier' });
  });

  test('an unknown trunk is refused', () => {
    expect(router().plan(tel, 'nobody')).toMatchObject({ ok: false, field: 'trunk' });
    expect(router().plan(sipTo('10.0.0.1'), 'nobody')).toMatchObject({ ok: false, field: 'trunk' });
  });

  test('the limits of a trunk are asked for by its name', () => {
    const limits = { callsPerSecond: 0.5, maxConcurrentCalls: 2 };

    expect(router({ trunk: { limits } }).limitsOf('carrier')).toEqual(limits);
    expect(router().limitsOf('carrier')).toBeUndefined();
    expect(router({ trunk: { limits } }).limitsOf('nobody')).toBeUndefined();
  });

  test('tel: without any trunk is refused', () => {
    const bare = createRouter({ trunks: loadTrunks({ secrets: () => ({}) }), allowedNetworks: [] });

    expect(bare.plan(tel, undefined)).toMatchObject({ ok: false, field: 'trunk' });
  });

  test.each([
    ['an address in the networks', '10.1.2.3', true],
    ['an address outside', '192.168.0.1', false],
    ['a v4-mapped address outside', '::ffff:192.168.0.1', false],
    ['a v4-mapped address inside', '::ffff:10.1.2.3', true],
    ['an IPv6 address inside', 'fd00::1', true],
    ['an IPv6 address as URIs write it', '[fd00::1]', true],
    ['an IPv6 address outside', '2001:db8::1', false],
    ['a host name, which is resolved when it is dialled', 'pbx.example', true],
  ])('a direct sip: target at %s', (_name, host, ok) => {
    const plan = router({ networks: ['10.0.0.0/8', 'fd00::/8'] }).plan(sipTo(host), undefined);

    expect(plan).toMatchObject(ok ? { ok } : { ok, field: 'target' });
    expect('trunk' in plan).toBe(false);
  });

  test('no direct target at all without networks', () => {
    expect(router().plan(sipTo('pbx.example'), undefined)).toMatchObject({ ok: false });
    expect(router().plan(sipTo('127.0.0.1'), undefined)).toMatchObject({ ok: false });
  });
});

describe('the way of an INVITE', () => {
  test('through a trunk', async () => {
    const auth = { username: 'a', password: 'b' };

    const route = await routeOf({}, { trunk: { auth, headers: { 'X-Account': '42' } } });

    expect(route).toEqual({
      requestUri: 'sip:+15551234567@gw.example:5080',
      to: '<sip:+15551234567@gw.example:5080>',
      from: '<sip:100@localhost>',
      headers: { 'X-Account': '42' },
      credentials: auth,
      gateway: 'gw.example:5080',
    });
  });

  test.each([
    ['e164', '', '+15551234567'],
    ['digits', '', '15551234567'],
    ['double-zero', '', '0015551234567'],
    ['digits', '99#', '99%2315551234567'],
  ] as const)(
    'number format %s with prefix "%s" gives %s',
    async (numberFormat, numberPrefix, user) => {
      const route = await routeOf({}, { trunk: { numberFormat, numberPrefix } });

      expect(route.requestUri).toBe(`sip:${user}@gw.example:5080`);
    },
  );

  test('over TCP and TLS, without a port', async () => {
    const tcp = await routeOf(
      {},
      { trunk: { gateways: [{ host: 'gw.example', transport: 'tcp' }] } },
    );
    const tls = await routeOf(
      {},
      { trunk: { gateways: [{ host: '2001:db8::1', transport: 'tls' }] } },
    );

    expect(tcp.requestUri).toBe('sip:+15551234567@gw.example;transport=tcp');
    expect(tcp.to).toBe('<sip:+15551234567@gw.example>');
    expect(tcp.gateway).toBe('gw.example:5060');
    expect(tls.requestUri).toBe('sip:+15551234567@[2001:db8::1];transport=tls');
    expect(tls.gateway).toBe('[2001:db8::1]:5061');
  });

  test('with the domain that the carrier wants in From', async () => {
    const route = await routeOf({}, { trunk: { fromDomain: 'calls.example.com' } });

    expect(route.from).toBe('<sip:100@calls.example.com>');
  });

  test('to a sip: target through a trunk keeps the target and goes to the gateway', async () => {
    const route = await routeOf({ target: sipTo('pbx.example', 5061), trunk: 'carrier' });

    expect(route).toMatchObject({
      requestUri: 'sip:bob@pbx.example:5061',
      nextHop: 'sip:gw.example:5080',
    });
  });

  test('directly to an address has no credentials and no next hop', async () => {
    const route = await routeOf({ target: sipTo('10.1.2.3', 5070) }, { networks: ['10.0.0.0/8'] });

    expect(route).toEqual({
      requestUri: 'sip:bob@10.1.2.3:5070',
      to: '<sip:bob@10.1.2.3:5070>',
      from: '<sip:100@localhost>',
      headers: {},
      gateway: '10.1.2.3:5070',
    });
  });

  test('directly to an IPv6 address', async () => {
    const target = sipTo('[fd00::1]', 5070);

    expect((await routeOf({ target }, { networks: ['fd00::/8'] })).requestUri).toBe(
      'sip:bob@[fd00::1]:5070',
    );
  });

  test('directly to a host name connects only to the address that was checked', async () => {
    const route = await routeOf(
      { target: sipTo('pbx.example') },
      { networks: ['10.0.0.0/8'], hosts: { 'pbx.example': ['192.168.0.1', '10.1.2.3'] } },
    );

    expect(route).toMatchObject({
      requestUri: 'sip:bob@pbx.example',
      nextHop: 'sip:10.1.2.3:5060',
      gateway: '10.1.2.3:5060',
    });
  });

  test.each([
    ['resolves outside of the networks', 'evil.example', /not in the allowed networks/],
    ['does not resolve', 'nowhere.example', /does not resolve/],
    ['takes too long to resolve', 'slow.example', /does not resolve/],
    ['is an address outside', '192.168.0.1', /not in the allowed networks/],
  ])('a host that %s is not dialled', async (_name, host, reason) => {
    const options = { networks: ['10.0.0.0/8'], hosts: { 'evil.example': ['127.0.0.1'] } };

    await expect(routeOf({ target: sipTo(host) }, options)).rejects.toThrow(reason);
  });

  test('what would break out of a URI is escaped', async () => {
    const route = await routeOf({ caller: '1"\r\n<>@x%zz%20é' });

    expect(route.from).toBe('<sip:1%22%0D%0A%3C%3E%40x%25zz%20%C3%A9@localhost>');
  });
});
