// Calls through a real Kamailio as the carrier's SBC: it challenges INVITE, REGISTER and requests
// within the dialog with SHA-256, stays in the path with Record-Route (loose routing), and relays
// to a phone.

import { pino } from 'pino';
import { describe, test as everywhere, expect, onTestFinished } from 'vitest';
import type { Trunk } from '../../src/sip/trunks/trunks.ts';
import { answer, openTrunkWorld } from '../sip/trunk-world.ts';
import { eventually } from '../support/eventually.ts';
import { startKamailio } from '../support/kamailio.ts';
import { forSuite } from '../support/opened.ts';
import { RawCallee, type RawMessage } from '../support/raw-callee.ts';
import { onlyEmbedded } from './engines.ts';
import { openAuthority, tlsTrunk } from './tls-world.ts';

const auth = { username: 'alice', password: 'wonderland' };

describe.each([
  { transport: 'udp', qop: 'auth' },
  { transport: 'tcp', qop: 'auth-int' },
  { transport: 'tls', qop: 'auth' },
] as const)('Kamailio as an SBC over $transport, with qop $qop', ({ transport, qop }) => {
  // drachtio-server has its own TLS settings.
  const test = transport === 'tls' ? onlyEmbedded : everywhere;
  const sbc = forSuite(async () => {
    const authority = transport === 'tls' ? await openAuthority() : undefined;
    const phone = await RawCallee.start({ dropsRepetitions: true });
    const kamailio = await startKamailio({
      ...{ phonePort: phone.port, realm: 'carrier.example', algorithm: 'SHA-256' },
      ...{ qop, password: auth.password, certificate: authority?.server },
    });
    const { port, tlsPort } = kamailio;
    const gateway = { host: '127.0.0.1', port, transport, priority: 0, weight: 1 };
    const trunk: Partial<Trunk> =
      authority === undefined ? { gateways: [gateway] } : tlsTrunk(tlsPort, authority.ca);
    return {
      ...{ phone, kamailio, trunk },
      async [Symbol.asyncDispose]() {
        await authority?.[Symbol.asyncDispose]();
        await kamailio[Symbol.asyncDispose]();
        await phone[Symbol.asyncDispose]();
      },
    };
  });

  async function open(options: Parameters<typeof openTrunkWorld>[0] = {}) {
    const trunk = { ...sbc.trunk, auth, ...options.trunk };
    const world = await openTrunkWorld({ ...options, gateways: 0, trunk });
    onTestFinished(async () => await world[Symbol.asyncDispose]());
    return world;
  }

  /** The headers that take the phone's requests back through Kamailio. */
  function routed(invite: RawMessage) {
    const routes = invite.headers.get('record-route') ?? [];
    return { headers: routes.map((route) => `Route: ${route}`) };
  }

  async function answered(trunk: Partial<Trunk> = {}) {
    const { phone } = sbc;
    const { place } = await open({ trunk });
    const { leg, observer } = place();
    const invite = await phone.take('INVITE');
    phone.reply(invite, 180, 'Ringing');
    phone.reply(invite, 200, 'OK', { body: answer });
    await observer.until('answered');
    leg.acknowledge();
    await phone.take('ACK');
    return { leg, observer, invite };
  }

  test('a call is answered, renegotiated and ended by the far end', async () => {
    const { phone } = sbc;
    const { leg, observer, invite } = await answered();

    expect(invite.headers.get('record-route')?.length).toBe(transport === 'udp' ? 1 : 2);
    phone.request(invite, 'INVITE', { body: answer, ...routed(invite) });
    const accepted = await phone.takeResponse(200);
    expect(accepted.method).toBe('INVITE');
    phone.request(invite, 'ACK', routed(invite));
    phone.request(invite, 'BYE', routed(invite));
    expect(await phone.takeAnswer('BYE')).toBe(200);
    await leg.released;

    expect(observer.kinds()).toEqual(['sent', 'resent', '180', 'answered', 'reoffer', 'ended']);
  });

  test('requests of the gateway within the call are challenged, and get through', async () => {
    const { phone, kamailio } = sbc;
    const { leg, observer } = await answered({ dtmf: 'info' });

    const pressed = leg.press('5', 100);
    phone.reply(await phone.take('INFO'), 200, 'OK', { contact: false });
    expect(await pressed).toBe(true);
    leg.hangUp('done');
    const bye = await phone.take('BYE');
    phone.reply(bye, 200, 'OK', { contact: false });
    await leg.released;

    expect(phone.has('BYE')).toBe(false);
    expect(observer.kinds()).toEqual(['sent', 'resent', '180', 'answered', 'ended']);
    const log = await kamailio.log();
    for (const method of ['INVITE', 'INFO', 'BYE']) {
      expect(log).toContain(`challenged ${method}`);
      expect(log).toContain(`proved ${method}`);
    }
  });

  test('a ringing call is cancelled', async () => {
    const { phone } = sbc;
    const { place } = await open();
    const { leg, observer } = place();
    const invite = await phone.take('INVITE');
    phone.reply(invite, 180, 'Ringing');
    await observer.until('provisional');

    leg.cancel('changed my mind');
    phone.reply(await phone.take('CANCEL'), 200, 'OK', { contact: false });
    phone.reply(invite, 487, 'Request Terminated');
    await phone.take('ACK');
    await leg.released;

    expect((await observer.until('failed')).failure.kind).toBe('cancelled');
  });

  test('a wrong password never rings the phone', async () => {
    const { place } = await open({ trunk: { auth: { ...auth, password: 'looking-glass' } } });
    const { leg, observer } = place();

    expect((await observer.until('failed')).failure).toMatchObject({
      sipStatus: 407,
      reason: 'Proxy Authentication Required (the credentials were refused)',
    });
    await leg.released;
    expect(sbc.phone.has('INVITE')).toBe(false);
  });

  test('a registration succeeds', async () => {
    const messages: string[] = [];
    const write = (line: string) => messages.push((JSON.parse(line) as { msg: string }).msg);
    await open({
      trunk: { register: { expiresS: 60 }, fromDomain: 'carrier.example' },
      logger: pino({ level: 'info' }, { write }),
    });

    await eventually(() => messages.includes('registered'), 'the gateway is registered');
    expect(messages).not.toContain('not registered');
  });
});
