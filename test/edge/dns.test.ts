// Gateways found by DNS (RFC 3263), on real SIP and against the test's own DNS server: NAPTR, SRV
// and several A records, with servers that are down.

import { describe, expect, test } from 'vitest';
import type { Gateway, Trunk } from '../../src/sip/trunks/trunks.ts';
import { answer, openTrunkWorld, type TrunkWorld } from '../sip/trunk-world.ts';
import { DnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { freeUdpPort } from '../support/free-port.ts';
import { forSuite } from '../support/opened.ts';
import { one, RawCallee, type RawMessage, udpAt } from '../support/raw-callee.ts';
import { startTlsCallee } from '../support/tls-channel.ts';
import { onlyEmbedded } from './engines.ts';
import { openAuthority, tlsTrunk } from './tls-world.ts';

const name = 'carrier.test';
const a = (address = '127.0.0.1', ttlS = 60) => ({ type: 'A', address, ttlS }) as const;
const srv = (port: number, more: { priority?: number; weight?: number; target?: string } = {}) =>
  ({ type: 'SRV', priority: 1, weight: 1, port, target: `sbc.${name}`, ...more }) as const;
const naptr = (service: string, replacement: string, order = 1, preference = 1) =>
  ({ type: 'NAPTR', service, replacement, order, preference }) as const;
const gatewayAt = (more: Partial<Gateway> = {}): Gateway => ({
  ...{ host: name, transport: 'udp', priority: 1, weight: 1, findsTransport: true },
  ...more,
});

type Options = Parameters<typeof openTrunkWorld>[0] & {
  readonly gateway?: Partial<Gateway>;
  readonly more?: Partial<Trunk>;
};

/** Opens a trunk with the gateway `carrier.test`, whose servers are the world's callees. */
async function open({ gateway = {}, more = {}, ...options }: Options = {}) {
  const dns = await DnsServer.start({ [`sbc.${name}`]: [a()] });
  const world = await openTrunkWorld({
    ...options,
    dns: { servers: [dns.address] },
    trunk: { gateways: [gatewayAt(gateway)], ...more },
  });
  const [first, second] = world.gateways;
  if (first === undefined || second === undefined) throw new Error('two callees');
  return {
    ...{ dns, world, first, second, place: world.place },
    async [Symbol.asyncDispose]() {
      await world[Symbol.asyncDispose]();
      await dns[Symbol.asyncDispose]();
    },
  };
}

/** Answers the call that arrives at this callee, and hangs up. */
async function completed(
  { leg, observer }: ReturnType<TrunkWorld['place']>,
  callee: RawCallee,
): Promise<RawMessage> {
  const invite = await callee.take('INVITE');
  callee.reply(invite, 200, 'OK', { body: answer });
  await observer.until('answered');
  leg.acknowledge();
  await callee.take('ACK');
  leg.hangUp('done');
  callee.reply(await callee.take('BYE'), 200, 'OK');
  await leg.released;
  return invite;
}

describe('the servers of a gateway come from DNS', () => {
  test('SRV names the port; the request URI keeps the name, and events too', async () => {
    await using trunk = await open();
    trunk.dns.set(`_sip._udp.${name}`, [srv(trunk.second.port)]);

    const call = trunk.place();
    const invite = await completed(call, trunk.second);

    expect(invite.startLine).toBe(`INVITE sip:15551230001@${name} SIP/2.0`);
    expect(one(invite, 'to')).toContain(`sip:15551230001@${name}`);
    expect((await call.observer.until('sent')).gateway).toBe(`${name}:5060`);
  });

  test('lower priorities first; a server that is down leads to the next one', async () => {
    await using trunk = await open();
    const closed = await freeUdpPort();
    trunk.dns.set(`_sip._udp.${name}`, [
      srv(trunk.second.port, { priority: 30 }),
      srv(closed, { priority: 10 }),
      srv(trunk.first.port, { priority: 20 }),
    ]);

    const call = trunk.place();
    await completed(call, trunk.first);

    const { attempt } = await call.observer.until('attemptFailed');
    expect(attempt).toMatchObject({ gateway: `${name}:5060`, sipStatus: 503 });
    expect(trunk.second.has('INVITE')).toBe(false);
  });

  test('a server that answers 503 leads to the next one, and one that answers 486 does not', async () => {
    await using trunk = await open();
    trunk.dns.set(`_sip._udp.${name}`, [
      srv(trunk.first.port, { priority: 1 }),
      srv(trunk.second.port, { priority: 2 }),
    ]);

    const { observer } = trunk.place();
    trunk.first.reply(await trunk.first.take('INVITE'), 503, 'Service Unavailable');
    trunk.second.reply(await trunk.second.take('INVITE'), 486, 'Busy Here');

    expect((await observer.until('failed')).failure.sipStatus).toBe(486);
  });

  test('several A records: one that is down leads to the next one, which then comes first', async () => {
    const port = await freeUdpPort();
    await using callee = await RawCallee.start({ over: udpAt({ host: '127.0.0.2', port }) });
    // The dice put 127.0.0.1 first, where nobody listens on the port.
    await using trunk = await open({ gateway: { port }, dice: () => 0 });
    trunk.dns.set(name, [a('127.0.0.1'), a('127.0.0.2')]);

    const call = trunk.place();
    await completed(call, callee);
    expect((await call.observer.until('attemptFailed')).attempt.sipStatus).toBe(503);

    const next = trunk.place();
    await completed(next, callee);
    expect(next.observer.events.map(({ kind }) => kind)).not.toContain('attemptFailed');
  });

  test('NAPTR: order, then preference, and only services that it names', async () => {
    await using trunk = await open();
    trunk.dns.set(name, [
      naptr('SIP+D2U', `_sip._udp.second.${name}`, 50, 20),
      naptr('SIP+D2U', `_sip._udp.first.${name}`, 50, 10),
      naptr('E2U+sip', `_sip._udp.wrong.${name}`, 1, 1),
    ]);
    trunk.dns.set(`_sip._udp.first.${name}`, [srv(await freeUdpPort())]);
    trunk.dns.set(`_sip._udp.second.${name}`, [srv(trunk.second.port)]);

    const call = trunk.place();
    await completed(call, trunk.second);

    expect(await call.observer.until('attemptFailed')).toBeDefined();
    expect(trunk.dns.asked('SRV')).not.toContain(`_sip._udp.${name}`);
  });

  test('a gateway with a transport: no NAPTR; with a port: no SRV either', async () => {
    const port = await freeUdpPort();
    await using callee = await RawCallee.start({ over: udpAt({ port }) });
    await using trunk = await open({ gateway: { port } });
    trunk.dns.set(name, [a()]);
    await completed(trunk.place(), callee);
    expect([...trunk.dns.asked('NAPTR'), ...trunk.dns.asked('SRV')]).toEqual([]);

    const { findsTransport, ...set } = gatewayAt();
    trunk.world.replace({ gateways: [set] });
    trunk.dns.set(`_sip._udp.${name}`, [srv(trunk.first.port)]);
    await completed(trunk.place(), trunk.first);
    expect(trunk.dns.asked('NAPTR')).toEqual([]);
    expect(trunk.dns.asked('SRV')).toEqual([`_sip._udp.${name}`]);
  });
});

describe('DNS that fails', () => {
  test('a name that does not exist fails like a gateway that is down: the next gateway follows', async () => {
    await using trunk = await open();
    const { port } = trunk.second;
    const literal = gatewayAt({ host: '127.0.0.1', port, priority: 2 });
    trunk.world.replace({ gateways: [gatewayAt(), literal] });

    const call = trunk.place();
    await completed(call, trunk.second);

    const { attempt } = await call.observer.until('attemptFailed');
    expect(attempt).toMatchObject({ sipStatus: 503, reason: 'DNS Error: no such name' });
  });

  test('a server that stays silent fails the call after the time-out', async () => {
    await using trunk = await open({ limits: { resolveTimeoutMs: 100 } });
    trunk.dns.behave('*', 'silent');

    const { failure } = await trunk.place().observer.until('failed');

    expect(failure).toMatchObject({ kind: 'stack', sipStatus: 503 });
    expect(failure.reason).toBe('DNS Error: no answer within the time-out');
  });

  test('a health probe goes to every address, and one that responds keeps the gateway up', async () => {
    await using trunk = await open();
    trunk.dns.set(`_sip._udp.${name}`, [
      srv(await freeUdpPort(), { priority: 1 }),
      srv(trunk.first.port, { priority: 2 }),
    ]);
    trunk.world.replace({
      gateways: [gatewayAt()],
      health: { intervalMs: 50, failThreshold: 1, recoverThreshold: 1 },
    });

    for (let probes = 0; probes < 3; probes += 1) {
      const options = await trunk.first.take('OPTIONS');
      expect(options.startLine).toBe(`OPTIONS sip:${name} SIP/2.0`);
      trunk.first.reply(options, 200, 'OK');
    }
    await eventually(() => trunk.world.sip.gateways()[0]?.isUp === true, 'the gateway is up');
    // The probe has shown which address works, so the call goes there first.
    const call = trunk.place();
    await completed(call, trunk.first);
    expect(call.observer.events.map(({ kind }) => kind)).not.toContain('attemptFailed');
  });
});

describe('SRV over TLS', () => {
  const authority = forSuite(openAuthority);

  onlyEmbedded(
    'the certificate must be for the name in the configuration, at every server',
    async () => {
      await using right = await startTlsCallee(await authority.ca.issue(name));
      await using wrong = await startTlsCallee(await authority.ca.issue('somebody.test'));
      await using dns = await DnsServer.start({
        [`sbc.${name}`]: [a()],
        [`_sips._tcp.${name}`]: [
          srv(wrong.port, { priority: 1 }),
          srv(right.port, { priority: 2 }),
        ],
      });
      const { tls } = tlsTrunk(0, authority.ca);
      await using world = await openTrunkWorld({
        gateways: 0,
        dns: { servers: [dns.address] },
        trunk: {
          gateways: [{ host: name, transport: 'tls', priority: 1, weight: 1 }],
          ...(tls !== undefined && { tls }),
        },
      });

      const call = world.place();
      const invite = await completed(call, right.callee);

      expect(right.connections[0]?.servername).toBe(name);
      expect(invite.startLine).toBe(`INVITE sip:15551230001@${name};transport=tls SIP/2.0`);
      expect((await call.observer.until('attemptFailed')).attempt.reason).toMatch(/^TLS: /);
      expect(wrong.callee.has('INVITE')).toBe(false);
    },
  );
});
