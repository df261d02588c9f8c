// Trunks over TLS on the embedded engine, with real TLS on loopback. drachtio-server has its own
// TLS settings, so only one case is about it. Failures are in `tls-failures.test.ts`.

import { readFileSync } from 'node:fs';
import { describe, expect } from 'vitest';
import { answer, openTrunkWorld, type TrunkWorld } from '../sip/trunk-world.ts';
import { eventually } from '../support/eventually.ts';
import { forSuite } from '../support/opened.ts';
import { one, type RawMessage } from '../support/raw-callee.ts';
import { startTlsCallee, type TlsCallee } from '../support/tls-channel.ts';
import { onlyDrachtio, onlyEmbedded } from './engines.ts';
import { openAuthority, tlsTrunk } from './tls-world.ts';

const authority = forSuite(openAuthority);

type Carrier = {
  readonly carrier: TlsCallee;
  readonly world: TrunkWorld;
  /** Where the Contact points to. Default: `carrier`. */
  readonly next?: TlsCallee;
};

/** Places a call that the carrier answers, up to its ACK. */
async function placeAnswered({ carrier, world, next = carrier }: Carrier, contact?: string) {
  const { leg, observer } = world.place();
  const invite = await carrier.callee.take('INVITE');
  carrier.callee.reply(invite, 200, 'OK', {
    body: answer,
    ...(contact !== undefined && { contact: false, headers: [`Contact: ${contact}`] }),
  });
  await observer.until('answered');
  leg.acknowledge();
  const ack = await next.callee.take('ACK');
  return { leg, observer, invite, ack };
}

const openWorld = (carrier: TlsCallee) =>
  openTrunkWorld({ gateways: 0, trunk: tlsTrunk(carrier.port, authority.ca) });

function portIn(message: RawMessage, header: string): number {
  return Number(/127\.0\.0\.1:(\d+)/.exec(one(message, header))?.[1]);
}

describe('a call over TLS', () => {
  onlyEmbedded('is answered, and the far end hangs up over the same connection', async () => {
    await using carrier = await startTlsCallee(authority.server);
    await using world = await openWorld(carrier);
    const { observer, invite } = await placeAnswered({ carrier, world });

    const localPort = carrier.connections[0]?.remotePort;
    expect(one(invite, 'via')).toMatch(new RegExp(`^SIP/2.0/TLS 127.0.0.1:${localPort};branch=`));
    expect(one(invite, 'contact')).toBe(`<sip:127.0.0.1:${localPort};transport=tls>`);
    expect(invite.startLine).toBe(
      `INVITE sip:15551230001@localhost:${carrier.port};transport=tls SIP/2.0`,
    );
    expect(carrier.connections[0]?.servername).toBe('localhost');
    expect(carrier.connections[0]?.getProtocol()).toBe('TLSv1.3');

    carrier.callee.request(invite, 'BYE');
    expect(await carrier.callee.takeAnswer('BYE')).toBe(200);
    expect((await observer.until('ended')).end.by).toBe('remote');
    expect(carrier.connections).toHaveLength(1);
  });

  onlyDrachtio('is answered and hung up, without any check of the certificate', async () => {
    await using carrier = await startTlsCallee(authority.server);
    // The certificate is for localhost, and drachtio-server doesn't know its CA.
    const trunk = tlsTrunk(carrier.port, authority.ca, {}, '127.0.0.1');
    await using world = await openTrunkWorld({ gateways: 0, trunk });
    const { observer, invite } = await placeAnswered({ carrier, world });

    expect(one(invite, 'via')).toMatch(/^SIP\/2.0\/TLS /);
    expect(one(invite, 'contact')).toMatch(/^<sips?:127\.0\.0\.1:\d+;transport=tls>$/);

    carrier.callee.request(invite, 'BYE');
    expect(await carrier.callee.takeAnswer('BYE')).toBe(200);
    expect((await observer.until('ended')).end.by).toBe('remote');
    expect(carrier.connections).toHaveLength(1);
    expect(carrier.connections[0]?.servername).toBe(false);
  });

  onlyEmbedded('shares its connection with other calls, in both directions', async () => {
    await using carrier = await startTlsCallee(authority.server);
    await using world = await openWorld(carrier);
    const first = await placeAnswered({ carrier, world });
    const second = await placeAnswered({ carrier, world });

    carrier.callee.request(first.invite, 'INVITE', { body: answer });
    await carrier.callee.takeResponse(200);
    carrier.callee.request(first.invite, 'ACK');
    second.leg.hangUp('done');
    carrier.callee.reply(await carrier.callee.take('BYE'), 200, 'OK');
    await second.leg.released;
    expect(carrier.connections).toHaveLength(1);
    expect(first.observer.kinds()).toContain('reoffer');
  });

  onlyEmbedded('speaks TLS 1.2 with a carrier that knows nothing newer', async () => {
    await using carrier = await startTlsCallee(authority.server, { maxVersion: 'TLSv1.2' });
    await using world = await openWorld(carrier);
    await placeAnswered({ carrier, world });
    expect(carrier.connections[0]?.getProtocol()).toBe('TLSv1.2');
  });

  onlyEmbedded('is hung up over a new connection if the first one was lost', async () => {
    await using carrier = await startTlsCallee(authority.server);
    await using world = await openWorld(carrier);
    const { leg } = await placeAnswered({ carrier, world });

    carrier.connections[0]?.end();
    await eventually(() => carrier.connections[0]?.destroyed === true, 'the connection is closed');
    leg.hangUp('done');
    const bye = await carrier.callee.take('BYE');
    carrier.callee.reply(bye, 200, 'OK');
    await leg.released;
    expect(carrier.connections).toHaveLength(2);
    expect(one(bye, 'via')).toContain('SIP/2.0/TLS');
  });

  onlyEmbedded.each([
    ['has no transport', (port: number) => `<sip:callee@127.0.0.1:${port}>`],
    ['is a sips: URI', (port: number) => `<sips:callee@127.0.0.1:${port}>`],
    ['names another port, over UDP', () => '<sip:callee@127.0.0.1:9>'],
    ['is a private address', () => '<sip:callee@10.255.255.1:5061;transport=tls>'],
  ])('stays on its connection if the Contact %s', async (_name, contact) => {
    await using carrier = await startTlsCallee(authority.server);
    await using world = await openWorld(carrier);
    const { leg } = await placeAnswered({ carrier, world }, contact(carrier.port));
    leg.hangUp('done');
    const bye = await carrier.callee.take('BYE');
    carrier.callee.reply(bye, 200, 'OK');
    await leg.released;
    expect(one(bye, 'reason')).not.toContain('Contact');
    expect(carrier.connections).toHaveLength(1);
  });

  onlyEmbedded(
    'follows a Contact to another TLS host, with the settings of its trunk',
    async () => {
      await using carrier = await startTlsCallee(authority.server);
      await using other = await startTlsCallee(authority.server);
      await using world = await openWorld(carrier);
      const contact = `<sip:callee@127.0.0.1:${other.port};transport=tls>`;
      const { leg } = await placeAnswered({ carrier, world, next: other }, contact);
      // The certificate doesn't contain 127.0.0.1, so the engine has verified the gateway's name.
      leg.hangUp('done');
      other.callee.reply(await other.callee.take('BYE'), 200, 'OK');
      await leg.released;
    },
  );

  onlyEmbedded('shows the far end which connection to use after a reconnect', async () => {
    await using carrier = await startTlsCallee(authority.server);
    await using world = await openWorld(carrier);
    await placeAnswered({ carrier, world });
    carrier.connections[0]?.end();
    await eventually(() => carrier.connections[0]?.destroyed === true, 'the connection is closed');
    const second = await placeAnswered({ carrier, world });
    expect(portIn(second.invite, 'contact')).toBe(carrier.connections[1]?.remotePort);
  });

  onlyEmbedded('is hung up by another engine, after its own one has died', async () => {
    await using carrier = await startTlsCallee(authority.server);
    const contact = `<sips:callee@127.0.0.1:${carrier.port}>`;
    const orphan = await (async () => {
      await using world = await openWorld(carrier);
      const { observer } = await placeAnswered({ carrier, world }, contact);
      return (await observer.until('answered')).leg;
    })();
    carrier.callee.inbox.splice(0);

    await using world = await openWorld(carrier);
    const ended = world.sip.endOrphan(orphan);
    const bye = await carrier.callee.take('BYE');
    carrier.callee.reply(bye, 200, 'OK');
    expect(await ended).toBe('ended');
    expect(one(bye, 'via')).toContain('SIP/2.0/TLS');
    expect(bye.startLine).toBe(`BYE sips:callee@127.0.0.1:${carrier.port} SIP/2.0`);
  });

  onlyEmbedded('keeps its connection open while it is up', async () => {
    await using carrier = await startTlsCallee(authority.server);
    const timers = { tcpPartialMs: 40, tcpIdleMs: 80 };
    const trunk = tlsTrunk(carrier.port, authority.ca);
    await using world = await openTrunkWorld({ gateways: 0, trunk, timers });
    const { leg, invite, observer } = await placeAnswered({ carrier, world });
    const startedAt = performance.now();
    await eventually(() => performance.now() - startedAt > 400, 'five idle time-outs have passed');
    expect(carrier.connections[0]?.destroyed).toBe(false);

    carrier.callee.request(invite, 'BYE');
    await observer.until('ended');
    await leg.released;
    await eventually(() => carrier.connections[0]?.destroyed === true, 'the connection is closed');
  });
});

describe('the settings of a TLS trunk', () => {
  onlyEmbedded('contain a client certificate, if the carrier requires one', async () => {
    const client = await authority.ca.issue('offhook');
    await using carrier = await startTlsCallee(authority.server, {
      requestCert: true,
      ca: readFileSync(authority.ca.ca),
    });
    const settings = {
      cert: readFileSync(client.cert, 'utf8'),
      key: readFileSync(client.key, 'utf8'),
    };
    const trunk = tlsTrunk(carrier.port, authority.ca, settings);
    await using world = await openTrunkWorld({ gateways: 0, trunk });
    await placeAnswered({ carrier, world });
    expect(carrier.connections[0]?.getPeerCertificate().subject.CN).toBe('offhook');
  });

  onlyEmbedded('name the server, for SNI and for the certificate', async () => {
    const named = await authority.ca.issue('trunks.carrier.example');
    await using carrier = await startTlsCallee(named);
    const settings = { serverName: 'trunks.carrier.example' };
    const trunk = tlsTrunk(carrier.port, authority.ca, settings);
    await using world = await openTrunkWorld({ gateways: 0, trunk });
    await placeAnswered({ carrier, world });
    expect(carrier.connections[0]?.servername).toBe('trunks.carrier.example');
  });

  onlyEmbedded.each([
    ['an address', '127.0.0.1', 'IP:127.0.0.1'],
    ['a name in a sip: URI', 'localhost', 'URI:sip:localhost'],
    ['one of several names', 'localhost', 'DNS:a.example,DNS:localhost'],
  ])('verify a certificate for %s', async (_name, host, names) => {
    const certificate = await authority.ca.issue(`names-${names.length}`, names);
    await using carrier = await startTlsCallee(certificate);
    const trunk = tlsTrunk(carrier.port, authority.ca, {}, host);
    await using world = await openTrunkWorld({ gateways: 0, trunk });
    await placeAnswered({ carrier, world });
    // An address is never sent as SNI (RFC 6066, section 3).
    expect(carrier.connections[0]?.servername).toBe(host === 'localhost' ? host : false);
  });

  onlyEmbedded('change with a reload, for new calls only', async () => {
    const second = await openAuthority();
    try {
      await using carrier = await startTlsCallee(authority.server);
      await using world = await openWorld(carrier);
      const before = await placeAnswered({ carrier, world });

      world.replace(tlsTrunk(carrier.port, second.ca));
      const { failure } = await world.place().observer.until('failed');
      expect(failure.reason).toBe('TLS: certificate is from an unknown CA');

      world.replace(tlsTrunk(carrier.port, authority.ca));
      await placeAnswered({ carrier, world });
      carrier.callee.request(before.invite, 'BYE');
      expect((await before.observer.until('ended')).end.by).toBe('remote');
    } finally {
      await second[Symbol.asyncDispose]();
    }
  });

  onlyEmbedded('keep the connection over a reload that does not change them', async () => {
    await using carrier = await startTlsCallee(authority.server);
    await using world = await openWorld(carrier);
    await placeAnswered({ carrier, world });
    world.replace(tlsTrunk(carrier.port, authority.ca));
    await placeAnswered({ carrier, world });
    expect(carrier.connections).toHaveLength(1);
  });
});

describe('other requests over TLS', () => {
  onlyEmbedded('are probes, registrations and answers to challenges', async () => {
    await using carrier = await startTlsCallee(authority.server);
    const trunk = {
      ...tlsTrunk(carrier.port, authority.ca),
      auth: { username: 'alice', password: 'secret' },
      register: { expiresS: 600 },
      health: { intervalMs: 50, failThreshold: 1, recoverThreshold: 1 },
    };
    await using world = await openTrunkWorld({ gateways: 0, trunk });
    const challenge = ['WWW-Authenticate: Digest realm="carrier", nonce="n1"'];
    const register = await carrier.callee.take('REGISTER');
    const localPort = carrier.connections[0]?.remotePort;
    expect(one(register, 'contact')).toBe(`<sip:alice@127.0.0.1:${localPort};transport=tls>`);
    carrier.callee.reply(register, 401, 'Unauthorized', { headers: challenge });
    const authorized = await carrier.callee.take('REGISTER');
    expect(one(authorized, 'authorization')).toContain('Digest');
    carrier.callee.reply(authorized, 200, 'OK');

    const probe = await carrier.callee.take('OPTIONS');
    expect(one(probe, 'via')).toContain('SIP/2.0/TLS');
    carrier.callee.reply(probe, 503, 'Out of Order');
    await eventually(() => world.sip.gateways()[0]?.isUp === false, 'the gateway is down');

    world.place();
    const invite = await carrier.callee.take('INVITE');
    carrier.callee.reply(invite, 401, 'Unauthorized', { headers: challenge });
    await carrier.callee.take('ACK');
    expect(one(await carrier.callee.take('INVITE'), 'authorization')).toContain('Digest');
    expect(carrier.connections).toHaveLength(1);
  });
});
