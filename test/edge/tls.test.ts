// Trunks over TLS on the embedded engine, with real TLS on loopback. drachtio-server has its own
// TLS settings, so none of these cases can run on it.

import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import type { Trunk } from '../../src/sip/trunks/trunks.ts';
import { answer, openTrunkWorld } from '../sip/trunk-world.ts';
import { type Certificate, createCa, type TestCa } from '../support/certificates.ts';
import { eventually } from '../support/eventually.ts';
import { one } from '../support/raw-callee.ts';
import { startTlsCallee } from '../support/tls-channel.ts';
import { onlyEmbedded } from './engines.ts';

let folder: string;
let ca: TestCa;
let server: Certificate;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'offhook-tls-'));
  ca = await createCa(folder, 'carrier-ca');
  server = await ca.issue('localhost');
});

afterAll(async () => {
  await rm(folder, { recursive: true });
});

function trunkTo(port: number, tls: Trunk['tls'] = {}): Partial<Trunk> {
  return {
    gateways: [{ host: 'localhost', port, transport: 'tls', priority: 1, weight: 1 }],
    tls: { ca: readFileSync(ca.ca, 'utf8'), ...tls },
  };
}

describe('a call over TLS', () => {
  onlyEmbedded('is answered, and the far end hangs up over the same connection', async () => {
    await using carrier = await startTlsCallee(server);
    await using world = await openTrunkWorld({ gateways: 0, trunk: trunkTo(carrier.port) });
    const { leg, observer } = world.place();

    const invite = await carrier.callee.take('INVITE');
    const localPort = carrier.connections[0]?.remotePort;
    expect(one(invite, 'via')).toMatch(new RegExp(`^SIP/2.0/TLS 127.0.0.1:${localPort};branch=`));
    expect(one(invite, 'contact')).toBe(`<sip:127.0.0.1:${localPort};transport=tls>`);
    expect(invite.startLine).toBe(
      `INVITE sip:15551230001@localhost:${carrier.port};transport=tls SIP/2.0`,
    );

    carrier.callee.reply(invite, 200, 'OK', { body: answer });
    await observer.until('answered');
    leg.acknowledge();
    await carrier.callee.take('ACK');
    carrier.callee.request(invite, 'BYE');
    expect(await carrier.callee.takeAnswer('BYE')).toBe(200);
    expect((await observer.until('ended')).end.by).toBe('remote');
    expect(carrier.connections).toHaveLength(1);
  });

  onlyEmbedded('is hung up by us, after its connection was lost', async () => {
    await using carrier = await startTlsCallee(server);
    await using world = await openTrunkWorld({ gateways: 0, trunk: trunkTo(carrier.port) });
    const { leg, observer } = world.place();
    const invite = await carrier.callee.take('INVITE');
    carrier.callee.reply(invite, 200, 'OK', { body: answer });
    await observer.until('answered');
    leg.acknowledge();
    await carrier.callee.take('ACK');

    carrier.connections[0]?.end();
    await eventually(() => carrier.connections[0]?.destroyed === true, 'the connection is closed');
    leg.hangUp('done');
    const bye = await carrier.callee.take('BYE');
    carrier.callee.reply(bye, 200, 'OK');
    await leg.released;
    expect(carrier.connections).toHaveLength(2);
    expect(one(bye, 'via')).toContain('SIP/2.0/TLS');
  });
});

describe('a call ends before any SIP is sent, and says why', () => {
  onlyEmbedded('if the certificate is for another name', async () => {
    const other = await ca.issue('sip.example');
    await using carrier = await startTlsCallee(other);
    await using world = await openTrunkWorld({ gateways: 0, trunk: trunkTo(carrier.port) });
    const { failure } = await world.place().observer.until('failed');
    expect(failure).toMatchObject({
      kind: 'stack',
      sipStatus: 503,
      reason: 'TLS: certificate is for sip.example, not for localhost',
    });
    expect(carrier.callee.inbox).toEqual([]);
  });
});
