// The caller that a request names, from the HTTP API to the carrier: name, headers, Identity,
// rewritten numbers and an extension, on a call that waited in the queue; and what stays out of the
// log.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeSeededDataDir } from '../support/databases.ts';
import { type GatewayProcess, startGateway } from '../support/gateway-process.ts';
import { forSuite } from '../support/opened.ts';
import { one, RawCallee } from '../support/raw-callee.ts';
import { startReceiver } from '../support/receiver.ts';

const dataDir = forSuite(makeSeededDataDir);
const receiver = forSuite(startReceiver);
let carrier: RawCallee;
let gateway: GatewayProcess;

beforeAll(async () => {
  carrier = await RawCallee.start({ dropsRepetitions: true });
  const file = join(dataDir.path, 'trunks.yaml');
  await writeFile(
    file,
    `trunks:
  - name: carrier
    default: true
    gateways: [{ host: 127.0.0.1, port: ${carrier.port} }]
    fromDomain: calls.example
    assertedIdentity: caller
    headers: { Identity: "trunk;info=<https://cert.example/trunk.pem>" }
    passHeaders: [X-Campaign]
    maxConcurrentCalls: 1
    rewrite:
      caller: [{ match: '\\+1(\\d{10})', replace: '$1' }]
      number: [{ match: '\\+1(\\d{10})', replace: '9$1' }]
  - name: agents
    gateways: [{ host: 127.0.0.1, port: ${carrier.port} }]
    fromDomain: agents.example
    rewrite: { number: [{ match: '(\\d+);phone-context=pbx\\.example', replace: '$1' }] }
`,
  );
  gateway = await startGateway(dataDir.path, {
    TRUNKS_FILE: file,
    NOTIFY_ALLOWED_NETWORKS: '127.0.0.0/8',
    SIP_ALLOWED_NETWORKS: '127.0.0.0/8',
    LOG_LEVEL: 'trace',
  });
});

afterAll(async () => {
  await gateway.terminate();
  await carrier[Symbol.asyncDispose]();
});

const sdp = [
  ...['v=0', 'o=- 1 1 IN IP4 127.0.0.1', 's=-', 'c=IN IP4 127.0.0.1', 't=0 0'],
  ...['m=audio 30000 RTP/AVP 0', ''],
].join('\r\n');

const identity = 'eyJ.c2VjcmV0.c2ln;info=<https://cert.example/request.pem>;ppt=shaken';
const who = {
  target: 'tel:+1-202-555-0110;ext=7',
  caller: '+12025550199',
  callerName: 'Zoë "Z" Müller',
  headers: { 'X-Campaign': 'spring-secret' },
  identity,
};

test('a queued call reaches the carrier with everything that the request says', async () => {
  await gateway.dialer.dial({ target: 'tel:+12025550111' });
  const first = await carrier.take('INVITE');
  const { callId } = await gateway.dialer.dial({ ...who, notifyurl: receiver.url });
  carrier.reply(first, 486, 'Busy Here');
  await carrier.take('ACK');

  const invite = await carrier.take('INVITE');
  expect(invite.startLine).toBe(
    `INVITE sip:92025550110;ext=7@127.0.0.1:${carrier.port};user=phone SIP/2.0`,
  );
  const address = '"Zoë \\"Z\\" Müller" <sip:2025550199@calls.example>';
  expect(one(invite, 'from').replace(/;tag=.*$/, '')).toBe(address);
  expect(one(invite, 'p-asserted-identity')).toBe(address);
  expect(one(invite, 'identity')).toBe(identity);
  expect(one(invite, 'x-campaign')).toBe('spring-secret');
  carrier.reply(invite, 486, 'Busy Here');
  await carrier.take('ACK');

  expect((await receiver.untilEnded(callId)).at(-1)).toMatchObject({ outcome: 'busy' });
  const { body } = await gateway.dialer.list('?number=%2B12025550110');
  expect(body).toMatchObject({
    calls: [{ callId, target: 'tel:+12025550110;ext=7', caller: '+12025550199' }],
  });
});

test('the second leg has a name and an Identity of its own, and a local number', async () => {
  const bridge = {
    ...{ to: 'tel:7042;phone-context=pbx.example', trunk: 'agents', caller: '100' },
    ...{ callerName: 'Verkauf Müller', identity, headers: { 'X-Campaign': 'spring-secret' } },
  };
  await gateway.dialer.dial({ ...who, bridge });
  const first = await carrier.take('INVITE');
  carrier.reply(first, 200, 'OK', { body: sdp, tag: 'person' });
  await carrier.take('ACK');

  const second = await carrier.take('INVITE');
  expect(second.startLine).toBe(`INVITE sip:7042@127.0.0.1:${carrier.port} SIP/2.0`);
  expect(one(second, 'from')).toMatch(/^"Verkauf Müller" <sip:100@agents\.example>;tag=/);
  expect(one(second, 'identity')).toBe(identity);
  expect(one(second, 'x-campaign')).toBe('spring-secret');
  carrier.reply(second, 486, 'Busy Here');
  carrier.reply(await carrier.take('BYE'), 200, 'OK');
});

test('the log of all levels has neither the name nor the headers', () => {
  const log = gateway.output();
  expect(log.length).toBeGreaterThan(0);
  for (const secret of ['Müller', 'spring-secret', 'c2VjcmV0', '2025550199']) {
    expect(log).not.toContain(secret);
  }
});

test.each([
  ['headers.X-Foo', { headers: { 'X-Foo': '1' } }],
  ['headers.X-Campaign', { headers: { 'X-Campaign': '1' }, target: 'sip:bob@127.0.0.1' }],
  ['callerName', { callerName: 'a\nb' }],
  ['identity', { identity: 'eyJ' }],
])('a 400 names %s', async (path, members) => {
  const { status, body } = await gateway.dialer.post({ ...who, ...members });
  expect(status).toBe(400);
  expect((body as { errors: { path: string }[] }).errors.map((error) => error.path)).toEqual([
    path,
  ]);
});
