// Registrars and providers whose domain isn't the address to which requests go, and accounts whose
// SIP user isn't the digest user.

import { describe, expect, test } from 'vitest';
import type { Gateway, Trunk } from '../../src/sip/trunks/trunks.ts';
import { answer, openTrunkWorld } from '../sip/trunk-world.ts';
import { DnsServer } from '../support/dns-server.ts';
import { freeUdpPort } from '../support/free-port.ts';
import { one, type RawCallee, type RawMessage } from '../support/raw-callee.ts';

const challenge = (realm: string) => ({
  headers: [`WWW-Authenticate: Digest realm="${realm}", nonce="abc", algorithm=MD5`],
});

/** Opens a trunk whose gateway is the provider's domain, and whose proxy is the first callee. */
async function open(more: Partial<Trunk> = {}) {
  const world = await openTrunkWorld({ gateways: 2 });
  const [proxy, other] = world.gateways;
  if (proxy === undefined || other === undefined) throw new Error('two callees');
  const provider: Gateway = { host: 'provider.test', transport: 'udp', priority: 1, weight: 1 };
  world.replace({
    gateways: [provider],
    outboundProxy: { host: '127.0.0.1', port: proxy.port },
    ...more,
  });
  return {
    ...{ world, proxy, other },
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  };
}

const account: Partial<Trunk> = {
  user: 'alice',
  auth: { username: 'alice-auth', password: 'secret' },
  register: { expiresS: 3_600 },
};

async function registered(registrar: RawCallee, realm: string): Promise<RawMessage> {
  registrar.reply(await registrar.take('REGISTER'), 401, 'Unauthorized', challenge(realm));
  const request = await registrar.take('REGISTER');
  registrar.reply(request, 200, 'OK', { contact: false });
  return request;
}

describe('an outbound proxy', () => {
  test('gets the requests, which carry the domain of the gateway', async () => {
    await using trunk = await open();

    const { leg, observer } = trunk.world.place();
    const invite = await trunk.proxy.take('INVITE');
    trunk.proxy.reply(invite, 200, 'OK', { body: answer });
    await observer.until('answered');
    leg.acknowledge();

    expect(invite.startLine).toBe('INVITE sip:15551230001@provider.test SIP/2.0');
    expect(one(invite, 'to')).toMatch(/^<?sip:15551230001@provider\.test>?$/);
    expect(one(invite, 'from')).toContain('sip:15550001111@provider.test');
    expect(invite.headers.has('route')).toBe(false);
    expect((await observer.until('sent')).gateway).toBe('provider.test:5060');
    await trunk.proxy.take('ACK');
  });

  test('gets the registration and the health probes too', async () => {
    await using trunk = await open({
      ...account,
      health: { intervalMs: 50, failThreshold: 1, recoverThreshold: 1 },
    });

    const request = await registered(trunk.proxy, 'provider.test');
    expect(request.startLine).toBe('REGISTER sip:provider.test SIP/2.0');
    const options = await trunk.proxy.take('OPTIONS');
    expect(options.startLine).toBe('OPTIONS sip:provider.test SIP/2.0');
    trunk.proxy.reply(options, 200, 'OK');
  });
});

describe('an account', () => {
  test('registers its SIP user with the credentials of its digest user', async () => {
    await using trunk = await open(account);

    const request = await registered(trunk.proxy, 'some realm');

    expect(one(request, 'to')).toContain('sip:alice@provider.test');
    expect(one(request, 'from')).toContain('sip:alice@provider.test');
    expect(one(request, 'contact')).toMatch(/^<sip:alice@127\.0\.0\.1:\d+>/);
    expect(one(request, 'authorization')).toContain('username="alice-auth"');
    expect(one(request, 'authorization')).toContain('realm="some realm"');
    expect(one(request, 'authorization')).toContain('uri="sip:provider.test"');
  });

  test('calls as its user, and the caller is in P-Asserted-Identity', async () => {
    await using trunk = await open({ ...account, assertedIdentity: 'caller' });
    await registered(trunk.proxy, 'provider.test');

    const { observer } = trunk.world.place();
    trunk.proxy.reply(await trunk.proxy.take('INVITE'), 401, 'Unauthorized', challenge('realm'));
    const invite = await trunk.proxy.take('INVITE');
    trunk.proxy.reply(invite, 486, 'Busy Here');
    await observer.until('failed');

    expect(one(invite, 'from')).toContain('sip:alice@provider.test');
    expect(one(invite, 'p-asserted-identity')).toBe('<sip:15550001111@provider.test>');
    expect(one(invite, 'authorization')).toContain('username="alice-auth"');
  });
});

describe('a registrar whose domain is not its address', () => {
  test('gets REGISTER and INVITE with its domain at its address', async () => {
    await using trunk = await open();
    const { port } = trunk.other;
    trunk.world.replace({
      ...account,
      gateways: [{ host: '127.0.0.1', port, transport: 'udp', priority: 1, weight: 1 }],
      fromDomain: 'office.test',
    });

    const request = await registered(trunk.other, 'office.test');
    expect(request.startLine).toBe('REGISTER sip:office.test SIP/2.0');

    const { observer } = trunk.world.place();
    const invite = await trunk.other.take('INVITE');
    trunk.other.reply(invite, 486, 'Busy Here');
    await observer.until('failed');
    expect(invite.startLine).toBe('INVITE sip:15551230001@office.test SIP/2.0');
    expect(one(invite, 'from')).toContain('sip:alice@office.test');
  });

  test('is found by SRV; REGISTER goes to the first server that responds, and is renewed there', async () => {
    await using dns = await DnsServer.start({
      'sbc.office.test': [{ type: 'A', address: '127.0.0.1' }],
    });
    await using world = await openTrunkWorld({
      gateways: 1,
      dns: { servers: [dns.address] },
      limits: { registerMinRefreshMs: 20 },
    });
    const [registrar] = world.gateways;
    if (registrar === undefined) throw new Error('a callee');
    const server = { type: 'SRV', weight: 1, target: 'sbc.office.test' } as const;
    dns.set('_sip._udp.office.test', [
      { ...server, priority: 1, port: await freeUdpPort() },
      { ...server, priority: 2, port: registrar.port },
    ]);
    world.replace({
      ...account,
      gateways: [{ host: 'office.test', transport: 'udp', priority: 1, weight: 1 }],
    });

    const first = await registrar.take('REGISTER');
    const contact = `Contact: ${one(first, 'contact')};expires=1`;
    registrar.reply(first, 200, 'OK', { contact: false, headers: [contact] });
    const renewed = await registrar.take('REGISTER');
    registrar.reply(renewed, 200, 'OK', { contact: false });

    expect(first.startLine).toBe('REGISTER sip:office.test SIP/2.0');
    expect(one(renewed, 'call-id')).toBe(one(first, 'call-id'));
  });
});
