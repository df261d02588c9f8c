// What happens to a call if its gateway can't be reached over TLS: nothing is sent, the reason says
// what failed, and the next gateway gets the call. On the embedded engine only, because
// drachtio-server has its own TLS settings and words.

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { describe, expect } from 'vitest';
import type { Trunk } from '../../src/sip/trunks/trunks.ts';
import { answer, openTrunkWorld } from '../sip/trunk-world.ts';
import { createCa } from '../support/certificates.ts';
import { eventually } from '../support/eventually.ts';
import { forSuite } from '../support/opened.ts';
import { startTlsCallee } from '../support/tls-channel.ts';
import { onlyEmbedded } from './engines.ts';
import { openAuthority, tlsTrunk } from './tls-world.ts';

const authority = forSuite(openAuthority);

async function failureOf(trunk: Partial<Trunk>, timers = {}) {
  await using world = await openTrunkWorld({ gateways: 0, trunk, timers });
  const { leg, observer } = world.place();
  const { failure } = await observer.until('failed');
  await leg.released;
  return failure;
}

/** A TCP server that does with its connections what the test says. */
async function startServer(serve: (socket: Socket) => void) {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined);
    socket.resume();
    serve(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    sockets,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

describe('a call over TLS fails, and says why', () => {
  onlyEmbedded.each([
    ['for another name', 'DNS:sip.example', 2, 'certificate is for sip.example, not for localhost'],
    ['for a subdomain', 'DNS:*.localhost', 2, 'certificate is for *.localhost, not for localhost'],
    ['for an address', 'IP:127.0.0.1', 2, 'certificate is for 127.0.0.1, not for localhost'],
    ['expired', 'DNS:localhost', -1, 'certificate has expired'],
  ])('if the certificate is %s', async (name, names, days, reason) => {
    const certificate = await authority.ca.issue(name.replaceAll(' ', '-'), names, days);
    await using carrier = await startTlsCallee(certificate);
    expect(await failureOf(tlsTrunk(carrier.port, authority.ca))).toMatchObject({
      kind: 'stack',
      sipStatus: 503,
      reason: `TLS: ${reason}`,
    });
    expect(carrier.callee.inbox).toEqual([]);
  });

  onlyEmbedded('if the certificate is from an unknown CA', async () => {
    await using carrier = await startTlsCallee(authority.server);
    const gateways = tlsTrunk(carrier.port, authority.ca).gateways ?? [];
    const { reason } = await failureOf({ gateways, tls: {} });
    expect(reason).toBe('TLS: certificate is from an unknown CA');
    expect(carrier.callee.inbox).toEqual([]);
  });

  onlyEmbedded('if the certificate is self-signed', async () => {
    const self = await createCa(authority.folder, 'self');
    const key = self.ca.replace('.pem', '-key.pem');
    await using carrier = await startTlsCallee({ cert: self.ca, key });
    const { reason } = await failureOf(tlsTrunk(carrier.port, authority.ca));
    expect(reason).toBe('TLS: self-signed certificate');
  });

  onlyEmbedded.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'if the carrier requires a client certificate (%s)',
    async (maxVersion) => {
      const ca = readFileSync(authority.ca.ca);
      const options = { requestCert: true, ca, maxVersion };
      await using carrier = await startTlsCallee(authority.server, options);
      const { reason } = await failureOf(tlsTrunk(carrier.port, authority.ca));
      expect(reason).toMatch(/^TLS: the far end .*client certificate/);
      expect(carrier.callee.inbox).toEqual([]);
    },
  );

  onlyEmbedded('if the carrier does not trust our client certificate', async () => {
    const other = await createCa(authority.folder, 'other');
    const client = await other.issue('offhook');
    const ca = readFileSync(authority.ca.ca);
    await using carrier = await startTlsCallee(authority.server, { requestCert: true, ca });
    const settings = {
      cert: readFileSync(client.cert, 'utf8'),
      key: readFileSync(client.key, 'utf8'),
    };
    const { reason } = await failureOf(tlsTrunk(carrier.port, authority.ca, settings));
    // Node's server closes the connection. Others send an alert, see `tls-reasons.test.ts`.
    expect(reason).toBe('TLS: the far end closed the connection');
  });

  onlyEmbedded('if nobody listens', async () => {
    const server = await startServer(() => undefined);
    await server[Symbol.asyncDispose]();
    const { reason } = await failureOf(tlsTrunk(server.port, authority.ca));
    expect(reason).toBe('TLS: connection refused');
  });

  onlyEmbedded('if the server does not speak TLS', async () => {
    await using server = await startServer((socket) => socket.write('SIP/2.0 400 Bad\r\n\r\n'));
    const { reason } = await failureOf(tlsTrunk(server.port, authority.ca));
    expect(reason).toBe('TLS: the far end does not speak TLS');
  });

  onlyEmbedded('if the server closes the connection during the handshake', async () => {
    await using server = await startServer((socket) => socket.once('data', () => socket.end()));
    const { reason } = await failureOf(tlsTrunk(server.port, authority.ca));
    expect(reason).toBe('TLS: the far end closed the connection');
  });

  onlyEmbedded('if the handshake never ends', async () => {
    await using server = await startServer(() => undefined);
    const { reason } = await failureOf(tlsTrunk(server.port, authority.ca), {
      tlsHandshakeMs: 100,
    });
    expect(reason).toBe('TLS: the handshake took too long');
    await eventually(() => server.sockets[0]?.destroyed === true, 'the engine hangs up');
  });

  onlyEmbedded('if the connection is lost before any response', async () => {
    await using carrier = await startTlsCallee(authority.server);
    const trunk = tlsTrunk(carrier.port, authority.ca);
    await using world = await openTrunkWorld({ gateways: 0, trunk });
    const { observer } = world.place();
    await carrier.callee.take('INVITE');
    carrier.connections[0]?.end();
    const { failure } = await observer.until('failed');
    expect(failure.reason).toBe('TLS: the far end closed the connection');
  });

  onlyEmbedded('if something other than SIP arrives', async () => {
    await using carrier = await startTlsCallee(authority.server);
    const trunk = tlsTrunk(carrier.port, authority.ca);
    await using world = await openTrunkWorld({ gateways: 0, trunk });
    const { observer } = world.place();
    await carrier.callee.take('INVITE');
    carrier.connections[0]?.write('HTTP/1.1 400\r\nContent-Length: many\r\n\r\n');
    const { failure } = await observer.until('failed');
    expect(failure.reason).toBe('TLS: the far end sent something other than SIP');
    await eventually(() => carrier.connections[0]?.destroyed === true, 'the connection is closed');
  });
});

describe('a far end', () => {
  onlyEmbedded.each([
    [
      'an answer over UDP',
      (contact: string) => ({ contact: false, headers: [`Contact: ${contact}`] }),
    ],
    ['a route over UDP', (contact: string) => ({ headers: [`Record-Route: ${contact}`] })],
  ])('cannot choose the TLS settings of a trunk by %s', async (_name, optionsFor) => {
    await using other = await startTlsCallee(authority.server);
    const { tls = {} } = tlsTrunk(other.port, authority.ca);
    await using world = await openTrunkWorld({ gateways: 1, trunk: { tls } });
    const [carrier] = world.gateways;
    if (carrier === undefined) throw new Error('no gateway');
    const { leg, observer } = world.place();
    const contact = `<sip:127.0.0.1:${other.port};lr;transport=tls;tls-trunk=carrier;tls-host=localhost>`;
    const invite = await carrier.take('INVITE');
    carrier.reply(invite, 200, 'OK', { body: answer, ...optionsFor(contact) });
    await observer.until('answered');
    leg.acknowledge();
    await eventually(() => other.errors.length > 0, 'the engine rejects the certificate');
    expect(other.callee.inbox).toEqual([]);
  });
});

describe('after a TLS error', () => {
  onlyEmbedded('the next gateway gets the call, and the timeline says why', async () => {
    const certificate = await authority.ca.issue('fail-over', 'DNS:sip.example');
    await using first = await startTlsCallee(certificate);
    await using second = await startTlsCallee(authority.server);
    const trunk = {
      ...tlsTrunk(first.port, authority.ca),
      gateways: [first, second].map(({ port }, priority) => ({
        ...{ host: 'localhost', port, transport: 'tls' as const, weight: 1, priority },
      })),
    };
    await using world = await openTrunkWorld({ gateways: 0, trunk });
    const { observer } = world.place();
    const invite = await second.callee.take('INVITE');
    second.callee.reply(invite, 200, 'OK', { body: answer });
    await observer.until('answered');
    expect((await observer.until('attemptFailed')).attempt).toMatchObject({
      gateway: `localhost:${first.port};transport=tls`,
      sipStatus: 503,
      reason: 'TLS: certificate is for sip.example, not for localhost',
    });
  });

  onlyEmbedded(
    'a phone that rings stops ringing, because its answer could not arrive',
    async () => {
      await using carrier = await startTlsCallee(authority.server);
      const trunk = tlsTrunk(carrier.port, authority.ca);
      await using world = await openTrunkWorld({ gateways: 0, trunk });
      const { observer } = world.place();
      const invite = await carrier.callee.take('INVITE');
      carrier.callee.reply(invite, 180, 'Ringing');
      await observer.until('provisional');
      carrier.connections[0]?.end();
      const cancel = await carrier.callee.take('CANCEL');
      carrier.callee.reply(cancel, 200, 'OK');
      carrier.callee.reply({ ...invite, from: cancel.from }, 487, 'Request Terminated');
      const { failure } = await observer.until('failed');
      expect(failure.reason).toBe('TLS: the far end closed the connection');
      expect(carrier.connections).toHaveLength(2);
      expect(observer.kinds()).toEqual(['sent', '180', 'failed']);
    },
  );

  onlyEmbedded('a call that was cancelled during the handshake never leaves', async () => {
    await using server = await startServer(() => undefined);
    const trunk = tlsTrunk(server.port, authority.ca);
    const timers = { tlsHandshakeMs: 300 };
    await using world = await openTrunkWorld({ gateways: 0, trunk, timers });
    const { leg, observer } = world.place();
    await eventually(() => server.sockets.length === 1, 'the engine connects');
    leg.cancel('the caller hung up');
    expect((await observer.until('failed')).failure.kind).toBe('cancelled');
    await leg.released;
  });
});
