// The caller as the carrier sees it: name, headers and Identity of the request.

import { expect, test } from 'vitest';
import { checkAddedHeaders } from '../../src/calls/caller/added-headers.ts';
import type { PlaceRequest } from '../../src/calls/ports.ts';
import { rewriteSchema } from '../../src/sip/trunks/rewrite.ts';
import type { Trunk } from '../../src/sip/trunks/trunks.ts';
import { offer, openTrunkWorld } from '../sip/trunk-world.ts';

/** Places a call over a trunk with these members, and returns its INVITE. */
async function invited(trunk: Partial<Trunk>, request: Partial<PlaceRequest>) {
  await using world = await openTrunkWorld({ gateways: 1, trunk });
  const { leg } = world.place(undefined, undefined, request);
  const [gateway] = world.gateways;
  if (gateway === undefined) throw new Error('the world has no gateway');
  const invite = await gateway.take('INVITE');
  leg.cancel('enough');
  gateway.reply(invite, 486, 'Busy Here');
  await gateway.take('ACK');
  const of = (name: string) => invite.headers.get(name.toLowerCase())?.join(' | ');
  return { ...invite, of };
}

const asserting = { assertedIdentity: 'caller', fromDomain: 'calls.example' } as const;

test.each([
  ['Ada Lovelace', '"Ada Lovelace"'],
  ['Zoë "Z" \\ Müller, 株式会社 📞', '"Zoë \\"Z\\" \\\\ Müller, 株式会社 📞"'],
  ['<sip:1@evil.example>;tag=x', '"<sip:1@evil.example>;tag=x"'],
  ['at localhost', '"at l\\ocalhost"'],
])('the name %s arrives in From and P-Asserted-Identity', async (callerName, display) => {
  const invite = await invited(asserting, { callerName });

  expect(invite.of('From')).toMatch(/;tag=\S+$/);
  expect(invite.of('From')?.replace(/;tag=\S+$/, '')).toBe(
    `${display} <sip:15550001111@calls.example>`,
  );
  expect(invite.of('P-Asserted-Identity')).toBe(`${display} <sip:15550001111@calls.example>`);
});

test('the longest name arrives, cut to what the engine takes if the trunk has no domain', async () => {
  const callerName = '📞'.repeat(80);
  const invite = await invited({}, { callerName });
  expect(invite.of('From')).toMatch(/^"(📞){35,80}" <sip:15550001111@127\.0\.0\.1:\d+>;tag=/u);

  const whole = await invited(asserting, { callerName });
  expect(whole.of('From')).toContain(`"${callerName}" <sip:15550001111@calls.example>`);
});

test('a fixed P-Asserted-Identity has no name', async () => {
  const invite = await invited({ assertedIdentity: 'tel:+15550001' }, { callerName: 'Ada' });
  expect(invite.of('P-Asserted-Identity')).toBe('<tel:+15550001>');
});

const token = (name: string) =>
  `${name}.eyJkZXN0Ijp7fX0.c2ln;info=<https://cert.example/a.pem>;alg=ES256;ppt="shaken"`;

test('the Identity of the request replaces that of the trunk, once', async () => {
  const trunk = { headers: { identity: token('trunk'), 'X-Account': '42' } };
  const own = await invited(trunk, { identity: token('request') });
  expect(own.of('Identity')).toBe(token('request'));
  expect(own.of('X-Account')).toBe('42');

  expect((await invited(trunk, {})).of('Identity')).toBe(token('trunk'));
});

test('headers of the request arrive, and replace those of the trunk that it passes on', async () => {
  const headers = { 'X-Campaign': 'spring', Diversion: '<sip:1@pbx.example>' };
  const invite = await invited(
    { headers: { 'x-campaign': 'none' }, passHeaders: ['x-campaign', 'diversion'] },
    { headers },
  );
  expect(invite.of('X-Campaign')).toBe('spring');
  expect(invite.of('Diversion')).toBe('<sip:1@pbx.example>');
});

test('the largest name, headers and Identity fit into an INVITE, with credentials too', async () => {
  await using world = await openTrunkWorld({
    gateways: 1,
    trunk: { ...asserting, auth: { username: 'a', password: 'b' }, passHeaders: ['x-note'] },
  });
  const value = token('x'.repeat(900));
  // The gateway's own offers are no longer than this.
  const offerSdp = `${offer}a=x-padding:${'p'.repeat(680 - offer.length)}\r\n`;
  const callerName = '📞'.repeat(80);
  const headerBytes = 2_048 - value.length - 2 * Buffer.byteLength(callerName);
  const note = 'n'.repeat(headerBytes - 'X-Note: \r\n'.length);
  const headers = { 'X-Note': note };
  const added = { callerName, identity: value, headers };
  expect(checkAddedHeaders(added, { mustPass: 'every', passes: () => true })).toEqual([]);
  const { leg } = world.place(undefined, undefined, { ...added, offerSdp });
  const [gateway] = world.gateways;
  if (gateway === undefined) throw new Error('the world has no gateway');
  gateway.reply(await gateway.take('INVITE'), 407, 'Proxy Authentication Required', {
    headers: ['Proxy-Authenticate: Digest realm="carrier.example", nonce="n", qop="auth"'],
  });
  await gateway.take('ACK');
  const second = await gateway.take('INVITE');
  leg.cancel('enough');
  gateway.reply(second, 486, 'Busy Here');
  await gateway.take('ACK');

  expect(second.headers.get('identity')).toEqual([value]);
  expect(second.headers.get('x-note')).toEqual([note]);
  expect(second.headers.get('p-asserted-identity')?.join()).toContain(callerName);
});

test('the INVITE that answers a challenge has the same caller, Identity and number', async () => {
  await using world = await openTrunkWorld({
    gateways: 1,
    trunk: { ...asserting, auth: { username: 'a', password: 'b' } },
  });
  const request = {
    callerName: 'Zoë; "Z"',
    identity: token('request'),
    target: { kind: 'tel', number: '12025550110', ext: '7' },
  } as const;
  const { leg } = world.place(undefined, undefined, request);
  const [gateway] = world.gateways;
  if (gateway === undefined) throw new Error('the world has no gateway');
  const first = await gateway.take('INVITE');
  gateway.reply(first, 401, 'Unauthorized', {
    headers: ['WWW-Authenticate: Digest realm="carrier", nonce="n", qop="auth"'],
  });
  await gateway.take('ACK');
  const second = await gateway.take('INVITE');
  leg.cancel('enough');
  gateway.reply(second, 486, 'Busy Here');
  await gateway.take('ACK');

  expect(second.startLine).toBe(first.startLine);
  for (const name of ['from', 'to', 'identity', 'p-asserted-identity']) {
    expect(second.headers.get(name)).toEqual(first.headers.get(name));
  }
  const uri = first.startLine.split(' ')[1];
  expect(second.headers.get('authorization')?.join()).toContain(`uri="${uri}"`);
});

const rules = rewriteSchema.parse({
  caller: [{ match: '\\+?1(\\d{10})', replace: '$1' }],
  number: [
    { match: '\\+1(\\d{10})', replace: '$1' },
    { match: '(\\d+);phone-context=pbx\\.example', replace: '8$1' },
  ],
});

test('the trunk rewrites the caller in From and P-Asserted-Identity, and the number', async () => {
  const invite = await invited(
    { ...asserting, rewrite: rules },
    { caller: '+15550001111', target: { kind: 'tel', number: '12025550110' } },
  );
  expect(invite.startLine).toMatch(/^INVITE sip:2025550110@127\.0\.0\.1:\d+ SIP/);
  expect(invite.of('To')).toMatch(/^<sip:2025550110@/);
  expect(invite.of('From')).toMatch(/^<sip:5550001111@calls\.example>/);
  expect(invite.of('P-Asserted-Identity')).toBe('<sip:5550001111@calls.example>');
});

test('a number that no rule matches has the format of the trunk', async () => {
  const invite = await invited(
    { rewrite: rules, numberFormat: 'double-zero' },
    { target: { kind: 'tel', number: '442079460000' } },
  );
  expect(invite.startLine).toMatch(/^INVITE sip:00442079460000@/);
});

const tel = { kind: 'tel', number: '12025550110', ext: '123' } as const;
const local = { kind: 'local', digits: '7042', phoneContext: 'example.com' } as const;

test.each([
  ['e164', tel, '+12025550110;ext=123'],
  ['digits', tel, '12025550110;ext=123'],
  ['double-zero', tel, '0012025550110;ext=123'],
  ['digits', local, '7042;phone-context=example.com'],
  ['e164', { ...local, phoneContext: '+1202', ext: '9' }, '7042;ext=9;phone-context=+1202'],
  ['e164', { ...local, digits: '*21#' }, '*21%23;phone-context=example.com'],
] as const)('with the number format %s, %j arrives as %s', async (numberFormat, target, user) => {
  const invite = await invited({ numberFormat }, { target });
  const uri = invite.startLine.split(' ')[1] ?? '';
  expect(uri.replace(/127\.0\.0\.1:\d+/, 'gateway')).toBe(`sip:${user}@gateway;user=phone`);
  expect(invite.of('To')).toBe(`<${uri}>`);
});

test('a user part may have a semicolon and a question mark', async () => {
  const target = { kind: 'sip', user: 'a;b?c', host: 'pbx.example' } as const;
  const invite = await invited({}, { target });
  expect(invite.startLine).toBe(`INVITE sip:${target.user}@pbx.example SIP/2.0`);
});

test('rules replace a local number with its context, and keep an extension', async () => {
  const target = { ...local, phoneContext: 'pbx.example' };
  const plain = await invited({ rewrite: rules }, { target });
  expect(plain.startLine).toMatch(/^INVITE sip:87042@127\.0\.0\.1:\d+ SIP/);

  const extended = await invited({ rewrite: rules }, { target: tel });
  expect(extended.startLine).toMatch(/^INVITE sip:2025550110;ext=123@127\.0\.0\.1:\d+;user=phone /);
});
