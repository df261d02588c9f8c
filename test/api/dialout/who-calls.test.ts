// The members `callerName`, `identity` and `headers` of a dial-out request, and those of `bridge`:
// how they are read, and which member a 400 names.

import { beforeEach, describe, expect, test } from 'vitest';
import { forSuite } from '../../support/opened.ts';
import { startHarness, token } from '../support.ts';

const harness = forSuite(startHarness);
beforeEach(() => {
  harness.submissions.length = 0;
});

async function dial(body: object) {
  const response = await harness.server.inject({
    method: 'POST',
    url: '/api/1.1/public/bot/st-1/V2/contactcenter/dialout',
    headers: { auth: await token() },
    payload: { botId: 'st-1', target: 'tel:+12025550110', caller: '15559876543', ...body },
  });
  const { errors } = response.json<{ errors?: { path: string; message: string }[] }>();
  return { status: response.statusCode, errors, request: harness.submissions[0]?.request };
}

const identity = 'eyJ.eyJ.c2ln;info=<https://cert.example/a.pem>;alg=ES256;ppt=shaken';
const bridge = { to: 'tel:+12025550105' };

describe('who calls', () => {
  test('is kept with the request', async () => {
    const who = {
      callerName: 'Zoë "Z" 📞',
      identity,
      headers: { Diversion: '<sip:1@pbx.example>' },
    };
    const { status, request } = await dial(who);

    expect(status).toBe(200);
    expect(request).toMatchObject(who);
  });

  test('is absent by default', async () => {
    const { request } = await dial({});

    expect(Object.keys(request ?? {})).not.toEqual(expect.arrayContaining(['callerName']));
    expect(Object.keys(request ?? {})).not.toEqual(expect.arrayContaining(['identity']));
    expect(Object.keys(request ?? {})).not.toEqual(expect.arrayContaining(['headers']));
  });

  test.each([
    ['callerName', { callerName: 'x'.repeat(81) }],
    ['callerName', { callerName: 'a\r\nVia: SIP/2.0/UDP 192.0.2.1' }],
    ['callerName', { callerName: 'a\u0000' }],
    ['callerName', { callerName: 'a\u0085' }],
    ['callerName', { callerName: '\ud800' }],
    ['callerName', { callerName: '' }],
    ['callerName', { callerName: 7 }],
    ['identity', { identity: 'eyJ.eyJ.c2ln' }],
    ['identity', { identity: `${identity}, ${identity}` }],
    ['identity', { identity: `${identity}\r\nVia: SIP/2.0/UDP 192.0.2.1` }],
    ['identity', { identity: 'eyJ.eyJ.c2ln;alg=ES256' }],
    ['identity', { identity: `${'a'.repeat(2_048)};info=<https://cert.example/a.pem>` }],
    ['headers.X-Foo', { headers: { 'X-Foo': '1' } }],
    ['headers.Identity', { headers: { Identity: identity } }],
    ['headers.From', { headers: { From: '<sip:1@a.example>' } }],
    ['headers.Diversion', { headers: { Diversion: 'x\r\nVia: y' } }],
    ['headers.Diversion', { headers: { Diversion: 'x' }, target: 'sip:bob@pbx.example' }],
    ['headers', { headers: { Diversion: 'x'.repeat(1_990) }, identity }],
    ['headers', { headers: { Diversion: 'x'.repeat(1_500) }, callerName: '📞'.repeat(80) }],
    [
      'identity',
      {
        identity: `${'a'.repeat(1_800)};info=<https://cert.example/a.pem>`,
        callerName: '📞'.repeat(80),
      },
    ],
    ['headers.Diversion', { headers: { Diversion: 1 } }],
    ['callername', { callername: 'Ada' }],
    ['caller_name', { caller_name: 'Ada' }],
    ['header', { header: {} }],
    ['idenity', { idenity: identity }],
    ['bridge.callerName', { bridge: { ...bridge, callerName: 'a\n' } }],
    ['bridge.identity', { bridge: { ...bridge, identity: 'x' } }],
    ['bridge.callername', { bridge: { ...bridge, callername: 'Ada' } }],
  ])('%s is named in the 400: %j', async (path, body) => {
    const { status, errors } = await dial(body);

    expect(status).toBe(400);
    expect(errors?.map((error) => error.path)).toEqual([path]);
    expect(harness.submissions).toEqual([]);
  });

  test('headers are checked even if the trunk does not exist', async () => {
    const { errors } = await dial({ trunk: 'none', headers: { From: 'x', 'X-Foo': '1' } });
    expect(errors?.map(({ path }) => path)).toEqual(['trunk', 'headers.From']);
  });

  test('counts the characters of a name, not their bytes', async () => {
    expect((await dial({ callerName: '📞'.repeat(80) })).status).toBe(200);
    expect((await dial({ callerName: '📞'.repeat(81) })).status).toBe(400);
  });

  test.each([
    ['without parameters after info', 'eyJ.eyJ.c2ln;info=<https://cert.example/a.pem>'],
    ['in the compact form', '..c2ln-_=;info=<https://cert.example/a.pem>;alg=ES256'],
    ['with info last', 'eyJ.eyJ.c2ln; alg=ES256; ppt="div"; info=<https://cert.example/a,b.pem>'],
  ])('accepts an identity %s', async (_, value) => {
    expect((await dial({ identity: value })).request).toMatchObject({ identity: value });
  });
});

describe('the second leg', () => {
  test('has the name of the call with the caller ID of the call', async () => {
    const { request } = await dial({ callerName: 'Ada', identity, bridge });

    expect(request?.bridge).toMatchObject({ caller: '15559876543', callerName: 'Ada' });
    expect(request?.bridge?.identity).toBeUndefined();
  });

  test('has no name with another caller ID, unless the request says so', async () => {
    const other = { ...bridge, caller: '15550001111' };
    expect((await dial({ callerName: 'Ada', bridge: other })).request?.bridge?.callerName).toBe(
      undefined,
    );
    harness.submissions.length = 0;
    const named = { ...other, callerName: 'Bob', identity };
    expect((await dial({ bridge: named })).request?.bridge).toMatchObject({
      callerName: 'Bob',
      identity,
    });
  });
});
