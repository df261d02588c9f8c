// An application's headers on the INVITE of a second leg, in addition to the trunk's headers. Only
// the operator controls the headers that the carrier uses for billing.

import { afterEach, beforeEach, expect, test } from 'vitest';
import { RecordingLeg } from '../support/recording-leg.ts';
import { headerOf } from '../support/scripted-drachtio.ts';
import { openScriptedTrunk, type ScriptedTrunk, someCall } from '../support/scripted-trunk.ts';

let trunk: ScriptedTrunk;

beforeEach(() => open());

async function open(passHeaders: readonly string[] = []): Promise<void> {
  const assertedIdentity = 'sip:100@carrier.example';
  trunk = await openScriptedTrunk({
    headers: { 'X-Account': '42' },
    ...{ passHeaders, assertedIdentity },
  });
}

const close = () => trunk[Symbol.asyncDispose]();
afterEach(close);

async function invitedWith(headers: Readonly<Record<string, string>>): Promise<string> {
  trunk.sip.place({ ...someCall, headers }, new RecordingLeg());
  return (await trunk.drachtio.take('INVITE')).sip;
}

test('are added to the INVITE', async () => {
  const invite = await invitedWith({ 'X-Ticket': '7', Diversion: '<sip:1@pbx.example>' });
  expect(headerOf(invite, 'X-Ticket')).toBe('7');
  expect(headerOf(invite, 'Diversion')).toBe('<sip:1@pbx.example>');
  expect(headerOf(invite, 'X-Account')).toBe('42');
});

test.each(['X-Account', 'x-account', 'P-Asserted-Identity', 'p-asserted-identity'])(
  '%s of the trunk is not replaced',
  async (name) => {
    const invite = await invitedWith({ [name]: 'mine' });
    expect(invite).not.toContain('mine');
    expect(headerOf(invite, 'X-Account')).toBe('42');
    expect(headerOf(invite, 'P-Asserted-Identity')).toBe('<sip:100@carrier.example>');
  },
);

test('a header that the trunk passes on replaces the trunk header once', async () => {
  await close();
  await open(['p-asserted-identity']);
  const invite = await invitedWith({ 'p-asserted-identity': '<sip:7@pbx.example>' });
  expect(headerOf(invite, 'P-Asserted-Identity')).toBe('<sip:7@pbx.example>');
  expect(invite.match(/p-asserted-identity/gi)).toHaveLength(1);
});
