import { describe, expect, test } from 'vitest';
import { rewriteSchema } from '../../src/sip/trunks/rewrite.ts';
import { createRouter, type RouteRequest } from '../../src/sip/trunks/routing.ts';
import { builtInTrunk, type Gateway, loadTrunks, type Trunk } from '../../src/sip/trunks/trunks.ts';

function router(
  options: {
    trunk?: Partial<Trunk>;
    networks?: readonly string[];
    down?: readonly string[];
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
    isUp: (_trunk, gateway) => options.down?.includes(gateway) !== true,
    dice: () => 0,
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

async function routesOf(request: Partial<RouteRequest>, options?: Parameters<typeof router>[0]) {
  const result = await router(options).resolve({ target: tel, caller: '100', ...request });
  if (!result.ok) throw new Error(result.reason);
  return result.routes;
}

async function routeOf(request: Partial<RouteRequest>, options?: Parameters<typeof router>[0]) {
  return (await routesOf(request, options))[0];
}

/** A gateway with the defaults of trunks.yaml. */
const gatewayAt = (host: string, more: Partial<Gateway> = {}): Gateway => ({
  host,
  transport: 'udp',
  priority: 1,
  weight: 1,
  ...more,
});

describe('checking a request before it is accepted', () => {
  test('sends tel: to the default trunk, or to the named trunk', () => {
    expect(router().plan(tel, undefined)).toEqual({ ok: true, trunk: 'carrier' });
    expect(router().plan(tel, 'carrier')).toEqual({ ok: true, trunk: 'carrier' });
  });

  test('refuses an unknown trunk', () => {
    expect(router().plan(tel, 'nobody')).toMatchObject({ ok: false, field: 'trunk' });
    expect(router().plan(sipTo('10.0.0.1'), 'nobody')).toMatchObject({ ok: false, field: 'trunk' });
  });

  test('passes the headers that the trunk lists, in any case, and no others', () => {
    const trusted = router({ trunk: { passHeaders: ['p-asserted-identity', 'diversion'] } });
    expect(trusted.passes('carrier', 'Diversion')).toBe(true);
    expect(trusted.passes('carrier', 'P-ASSERTED-IDENTITY')).toBe(true);
    expect(trusted.passes('carrier', 'Privacy')).toBe(false);
    expect(trusted.passes('another', 'Diversion')).toBe(false);
    expect(router().passes('carrier', 'Diversion')).toBe(false);
  });

  test('writes a transfer target in the number format of its trunk, and a sip: target unchanged', () => {
    const trunk = { numberFormat: 'digits', numberPrefix: '99#' } as const;
    const routes = router({ trunk });
    expect(routes.referTo(tel, 'carrier')).toBe('<sip:99%2315551234567@gw.example:5080>');
    expect(routes.referTo(tel, undefined)).toBe('<tel:+15551234567>');
    expect(routes.referTo(sipTo('pbx.example', 5_070), 'carrier')).toBe(
      '<sip:bob@pbx.example:5070>',
    );
    expect(routes.referTo(sipTo('2001:db8::1'), undefined)).toBe('<sip:bob@[2001:db8::1]>');
    // No part of the target may end the header.
    const hostile = { kind: 'sip', user: 'a>;x=<\r\n', host: 'pbx.example' } as const;
    expect(routes.referTo(hostile, undefined)).toMatch(/^<sip:[^<>\s]+@pbx\.example>$/);
  });

  const rewriting = rewriteSchema.parse({
    caller: [{ match: '(\\d*)0', replace: '$1' }],
    number: [{ match: '\\+1(\\d*)', replace: '$1' }],
  });

  test('names the member that the rules of the trunk make unusable', async () => {
    const routes = router({ trunk: { rewrite: rewriting } });
    const one = { kind: 'tel', number: '1' } as const;

    expect(routes.plan(tel, undefined, 'acme', '100')).toEqual({ ok: true, trunk: 'carrier' });
    expect(routes.plan(tel, undefined, 'acme', '0')).toMatchObject({ ok: false, field: 'caller' });
    expect(routes.plan(one, undefined)).toMatchObject({ ok: false, field: 'target' });
    const bob = sipTo('pbx.example');
    expect(routes.plan(bob, 'carrier', 'acme', '0')).toMatchObject({ ok: false, field: 'caller' });
    expect(await routes.resolve({ target: tel, caller: '0' })).toEqual({
      ok: false,
      reason: expect.stringMatching(/^the caller cannot be dialled: the rewrite rules of trunk/),
    });
  });

  test('writes a transfer target with the rules of its trunk and its parameters', () => {
    const routes = router({ trunk: { rewrite: rewriting } });
    const extended = { ...tel, ext: '7' } as const;
    const local = { kind: 'local', digits: '7042', phoneContext: 'pbx.example' } as const;

    expect(routes.referTo(tel, 'carrier')).toBe('<sip:5551234567@gw.example:5080>');
    expect(routes.referTo(extended, 'carrier')).toBe(
      '<sip:5551234567;ext=7@gw.example:5080;user=phone>',
    );
    expect(routes.referTo(local, 'carrier')).toBe(
      '<sip:7042;phone-context=pbx.example@gw.example:5080;user=phone>',
    );
    expect(routes.referTo(extended, undefined)).toBe('<tel:+15551234567;ext=7>');
    expect(routes.referTo(local, undefined)).toBe('<tel:7042;phone-context=pbx.example>');
  });

  test('returns the limits of a trunk by its name', () => {
    const limits = { callsPerSecond: 0.5, maxConcurrentCalls: 2 };

    expect(router({ trunk: { limits } }).limitsOf('carrier')).toEqual(limits);
    expect(router().limitsOf('carrier')).toBeUndefined();
    expect(router({ trunk: { limits } }).limitsOf('nobody')).toBeUndefined();
  });

  test('prefers the default trunk of an account to the general default', () => {
    const host = { host: 'gw.example', transport: 'udp' } as const;
    const routes = createRouter({
      trunks: loadTrunks({
        secrets: () => ({}),
        builtIn: [
          builtInTrunk('everybody', host),
          { ...builtInTrunk('own', host), isDefault: false, defaultFor: ['acme'] },
          { ...builtInTrunk('closed', host), isDefault: false, accounts: ['beta'] },
        ],
      }),
      allowedNetworks: [],
    });

    expect(routes.plan(tel, undefined, 'acme')).toEqual({ ok: true, trunk: 'own' });
    expect(routes.plan(tel, undefined, 'other')).toEqual({ ok: true, trunk: 'everybody' });
    expect(routes.plan(tel, 'own', 'other')).toEqual({ ok: true, trunk: 'own' });
    expect(routes.plan(tel, 'closed', 'beta')).toEqual({ ok: true, trunk: 'closed' });
    expect(routes.plan(tel, 'closed', 'acme')).toEqual({
      ok: false,
      field: 'trunk',
      message: 'there is no trunk named closed',
    });
  });

  test('refuses tel: without any trunk', () => {
    const bare = createRouter({ trunks: loadTrunks({ secrets: () => ({}) }), allowedNetworks: [] });

    expect(bare.plan(tel, undefined)).toMatchObject({ ok: false, field: 'trunk' });
  });

  test.each([
    ['an address in the networks', '10.1.2.3', true],
    ['an address outside', '192.168.0.1', false],
    ['a v4-mapped address outside', '::ffff:192.168.0.1', false],
    ['a v4-mapped address inside', '::ffff:10.1.2.3', true],
    ['an IPv6 address inside', 'fd00::1', true],
    ['an IPv6 address in brackets', '[fd00::1]', true],
    ['an IPv6 address outside', '2001:db8::1', false],
    ['a host name, which is resolved when it is dialled', 'pbx.example', true],
  ])('checks a direct sip: target at %s', (_name, host, ok) => {
    const plan = router({ networks: ['10.0.0.0/8', 'fd00::/8'] }).plan(sipTo(host), undefined);

    expect(plan).toMatchObject(ok ? { ok } : { ok, field: 'target' });
    expect('trunk' in plan).toBe(false);
  });

  test('refuses every direct target if no network is allowed', () => {
    expect(router().plan(sipTo('pbx.example'), undefined)).toMatchObject({ ok: false });
    expect(router().plan(sipTo('127.0.0.1'), undefined)).toMatchObject({ ok: false });
  });
});

describe('the route of an INVITE', () => {
  test('leads through a trunk', async () => {
    const auth = { username: 'a', password: 'b' };

    const route = await routeOf({}, { trunk: { auth, headers: { 'X-Account': '42' } } });

    expect(route).toEqual({
      requestUri: 'sip:+15551234567@gw.example:5080',
      to: '<sip:+15551234567@gw.example:5080>',
      from: '<sip:100@localhost>',
      headers: { 'X-Account': '42' },
      credentials: auth,
      gateway: 'gw.example:5080',
      trunk: 'carrier',
    });
  });

  test.each([
    ['e164', '', '+15551234567'],
    ['digits', '', '15551234567'],
    ['double-zero', '', '0015551234567'],
    ['digits', '99#', '99%2315551234567'],
  ] as const)(
    'writes number format %s with prefix "%s" as %s',
    async (numberFormat, numberPrefix, user) => {
      const route = await routeOf({}, { trunk: { numberFormat, numberPrefix } });

      expect(route.requestUri).toBe(`sip:${user}@gw.example:5080`);
    },
  );

  test('leads over TCP and TLS, without a port', async () => {
    const gateways = [
      gatewayAt('gw.example', { transport: 'tcp' }),
      gatewayAt('2001:db8::1', { transport: 'tls' }),
    ];

    const [tcp, tls] = await routesOf({}, { trunk: { gateways } });

    expect(tcp.requestUri).toBe('sip:+15551234567@gw.example;transport=tcp');
    expect(tcp.to).toBe('<sip:+15551234567@gw.example>');
    expect(tcp.gateway).toBe('gw.example:5060;transport=tcp');
    expect(tls?.requestUri).toBe('sip:+15551234567@[2001:db8::1];transport=tls');
    expect(tls?.gateway).toBe('[2001:db8::1]:5061;transport=tls');
  });

  test('lists every gateway of the trunk, those that are down last', async () => {
    const gateways = [
      gatewayAt('backup.example', { priority: 2 }),
      gatewayAt('down.example'),
      gatewayAt('first.example'),
    ];

    const routes = await routesOf({}, { trunk: { gateways }, down: ['down.example:5060'] });

    expect(routes.map(({ gateway }) => gateway)).toEqual([
      'first.example:5060',
      'backup.example:5060',
      'down.example:5060',
    ]);
    expect(routes.map(({ requestUri }) => requestUri)).toEqual([
      'sip:+15551234567@first.example',
      'sip:+15551234567@backup.example',
      'sip:+15551234567@down.example',
    ]);
  });

  test('lists all gateways even if all are down', async () => {
    const [route] = await routesOf({}, { down: ['gw.example:5080'] });

    expect(route.gateway).toBe('gw.example:5080');
  });

  test.each([
    ['the caller', 'caller', {}, '<sip:100@gw.example>'],
    ['the caller at fromDomain', 'caller', { fromDomain: 'a.example' }, '<sip:100@a.example>'],
    ['a fixed number', 'tel:+15550001', {}, '<tel:+15550001>'],
  ])('asserts the identity of %s', async (_name, assertedIdentity, more, value) => {
    const headers = { 'X-Account': '42' };

    const route = await routeOf({}, { trunk: { assertedIdentity, headers, ...more } });

    expect(route.headers).toEqual({ 'X-Account': '42', 'P-Asserted-Identity': value });
  });

  test('does not let a caller inject a header into the identity', async () => {
    const caller = '1>\r\nVia: x';

    const route = await routeOf({ caller }, { trunk: { assertedIdentity: 'caller' } });

    expect(route.headers['P-Asserted-Identity']).toBe('<sip:1%3E%0D%0AVia%3A%20x@gw.example>');
  });

  test('uses the domain that the carrier requires in From', async () => {
    const route = await routeOf({}, { trunk: { fromDomain: 'calls.example.com' } });

    expect(route.from).toBe('<sip:100@calls.example.com>');
  });

  test('keeps a sip: target through a trunk, and sends it to the gateway', async () => {
    const route = await routeOf({ target: sipTo('pbx.example', 5061), trunk: 'carrier' });

    expect(route).toMatchObject({
      requestUri: 'sip:bob@pbx.example:5061',
      nextHop: 'sip:gw.example:5080',
    });
  });

  test('leads directly to an address without credentials or next hop', async () => {
    const route = await routeOf({ target: sipTo('10.1.2.3', 5070) }, { networks: ['10.0.0.0/8'] });

    expect(route).toEqual({
      requestUri: 'sip:bob@10.1.2.3:5070',
      to: '<sip:bob@10.1.2.3:5070>',
      from: '<sip:100@localhost>',
      headers: {},
      gateway: '10.1.2.3:5070',
    });
  });

  test('leads directly to an IPv6 address', async () => {
    const target = sipTo('[fd00::1]', 5070);

    expect((await routeOf({ target }, { networks: ['fd00::/8'] })).requestUri).toBe(
      'sip:bob@[fd00::1]:5070',
    );
  });

  test('resolves a host name only to the address that was checked', async () => {
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
    ['resolves to an address outside the networks', 'evil.example', /not in the allowed networks/],
    ['does not resolve', 'nowhere.example', /does not resolve/],
    ['takes too long to resolve', 'slow.example', /does not resolve/],
    ['is an address outside the networks', '192.168.0.1', /not in the allowed networks/],
  ])('does not dial a host that %s', async (_name, host, reason) => {
    const options = { networks: ['10.0.0.0/8'], hosts: { 'evil.example': ['127.0.0.1'] } };

    await expect(routeOf({ target: sipTo(host) }, options)).rejects.toThrow(reason);
  });

  test('escapes characters that would break out of a URI', async () => {
    const route = await routeOf({ caller: '1"\r\n<>@x%zz%20é' });

    expect(route.from).toBe('<sip:1%22%0D%0A%3C%3E%40x%25zz%20%C3%A9@localhost>');
  });
});
