// Headers of an application on the INVITE of a second leg, beside those of its trunk: what the carrier's account rests on is the
// operator's.

import { afterEach, beforeEach, expect, test } from 'vitest';
import type { CallId } from '../../src/calls/contract/identity.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { createDrachtioSip, type DrachtioSip } from '../../src/sip/drachtio-sip.ts';
import { builtInTrunk, loadTrunks } from '../../src/sip/trunks/trunks.ts';
import { eventually } from '../support/eventually.ts';
import { RecordingLeg } from '../support/recording-leg.ts';
import { headerOf, ScriptedDrachtio } from '../support/scripted-drachtio.ts';

let drachtio: ScriptedDrachtio;
let sip: DrachtioSip;

beforeEach(() => open());

async function open(passHeaders: readonly string[] = []): Promise<void> {
  drachtio = await ScriptedDrachtio.start();
  const gateway = { host: '127.0.0.1', port: 5070, transport: 'udp' } as const;
  const trunk = { ...builtInTrunk('carrier', gateway), headers: { 'X-Account': '42' } };
  sip = createDrachtioSip({
    servers: [drachtio.address],
    trunks: loadTrunks({
      secrets: () => ({}),
      builtIn: [{ ...trunk, passHeaders, assertedIdentity: 'sip:100@carrier.example' }],
    }),
    allowedNetworks: [],
    logger: silentLogger,
    clock: { now: () => new Date() },
    limits: { disposeTimeoutMs: 50 },
  });
  await eventually(() => sip.ready(), 'the engine is connected');
}

async function close(): Promise<void> {
  await sip[Symbol.asyncDispose]();
  await drachtio[Symbol.asyncDispose]();
}

afterEach(close);

async function invitedWith(headers: Readonly<Record<string, string>>): Promise<string> {
  const target = { kind: 'tel', number: '15551230001' } as const;
  const asked = { callId: 'call-1' as CallId, target, caller: '100', offerSdp: 'v=0\r\n', headers };
  sip.place(asked, new RecordingLeg());
  return (await drachtio.take('INVITE')).sip;
}

test('stand in it', async () => {
  const invite = await invitedWith({ 'X-Ticket': '7', Diversion: '<sip:1@pbx.example>' });
  expect(headerOf(invite, 'X-Ticket')).toBe('7');
  expect(headerOf(invite, 'Diversion')).toBe('<sip:1@pbx.example>');
  expect(headerOf(invite, 'X-Account')).toBe('42');
});

test.each(['X-Account', 'x-account', 'P-Asserted-Identity', 'p-asserted-identity'])(
  '%s that the trunk writes stays the trunk’s',
  async (name) => {
    const invite = await invitedWith({ [name]: 'mine' });
    expect(invite).not.toContain('mine');
    expect(headerOf(invite, 'X-Account')).toBe('42');
    expect(headerOf(invite, 'P-Asserted-Identity')).toBe('<sip:100@carrier.example>');
  },
);

test('one that the trunk passes on stands in place of its own, once', async () => {
  await close();
  await open(['p-asserted-identity']);
  const invite = await invitedWith({ 'p-asserted-identity': '<sip:7@pbx.example>' });
  expect(headerOf(invite, 'P-Asserted-Identity')).toBe('<sip:7@pbx.example>');
  expect(invite.match(/p-asserted-identity/gi)).toHaveLength(1);
});
