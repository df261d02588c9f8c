import { readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { readSecrets } from '../../src/config.ts';
import { builtInTrunk, liveTrunks, loadTrunks } from '../../src/sip/trunks/trunks.ts';

const secrets = (names: readonly string[]) =>
  readSecrets(names, { ACME_SIP_PASSWORD: 'hush', EMPTY: '' });

function load(text: string, builtIn: Parameters<typeof loadTrunks>[0]['builtIn'] = []) {
  return loadTrunks({ file: { name: 'trunks.yaml', text }, secrets, builtIn });
}

const minimal = 'trunks:\n  - name: acme\n    gateways:\n      - host: sip.acme.example\n';

describe('trunks.yaml', () => {
  test('accepts the example in the repository', async () => {
    const text = await readFile(
      new URL('../../sip-config/trunks.example.yaml', import.meta.url),
      'utf8',
    );

    const trunks = load(text);

    expect(trunks.default).toEqual({
      name: 'acme',
      isDefault: true,
      defaultFor: [],
      gateways: [
        { host: 'sip1.acme.example', port: 5060, transport: 'udp', priority: 1, weight: 2 },
        {
          ...{ host: 'sip2.acme.example', transport: 'udp', priority: 1, weight: 1 },
          findsTransport: true,
        },
        { host: 'backup.acme.example', transport: 'tcp', priority: 2, weight: 1 },
      ],
      health: { intervalMs: 30_000, failThreshold: 3, recoverThreshold: 2 },
      auth: { username: 'acme-account-42', password: 'hush' },
      sessionTimer: { expiresS: 1_800, minS: 90 },
      register: { expiresS: 3_600 },
      numberFormat: 'e164',
      numberPrefix: '',
      assertedIdentity: 'caller',
      headers: { 'X-Account': '42' },
      passHeaders: ['diversion', 'x-campaign'],
      dtmf: 'rtp',
      codecs: ['PCMU', 'PCMA'],
      media: 'rtp',
      limits: { callsPerSecond: 20, maxConcurrentCalls: 40 },
    });
    expect(trunks.get('beta')).toMatchObject({
      isDefault: false,
      accounts: ['account-7'],
      gateways: [{ host: '192.0.2.10', transport: 'tcp' }],
      numberPrefix: '99',
      fromDomain: 'calls.example.com',
    });
  });

  test('makes the only trunk the default, even beside the sandbox', () => {
    const sandbox = builtInTrunk('sandbox', { host: '127.0.0.1', port: 5070, transport: 'udp' });

    const trunks = load(minimal, [sandbox]);

    expect(trunks.default?.name).toBe('acme');
    expect(trunks.all.filter((trunk) => trunk.isDefault)).toHaveLength(1);
    expect(trunks.get('sandbox')?.gateways[0]?.port).toBe(5070);
  });

  test('makes the built-in trunk the default if there is no file', () => {
    const sandbox = builtInTrunk('sandbox', { host: '127.0.0.1', transport: 'udp' });

    expect(loadTrunks({ secrets, builtIn: [sandbox] }).default?.name).toBe('sandbox');
    expect(loadTrunks({ secrets }).default).toBeUndefined();
  });

  test('accepts `passHeaders` in upper or lower case, but no headers of the gateway', () => {
    const passing = (names: string) => load(`${minimal}    passHeaders: [${names}]\n`);
    expect(passing('P-Asserted-Identity, DIVERSION, X-Ticket').get('acme')?.passHeaders).toEqual([
      ...['p-asserted-identity', 'diversion', 'x-ticket'],
    ]);
    for (const name of ['From', 'Route', 'identity', 'Content-Type']) {
      expect(() => passing(name)).toThrow(/passHeaders\[0\]: is set by the gateway itself/);
    }
    expect(() => passing('"P-A\\r\\nVia"')).toThrow(/passHeaders\[0\]: must be a header name/);
  });

  test('accepts an Identity header of the size that signing services issue', () => {
    const value = `${'a'.repeat(1_900)};info=<https://cert.example/a.pem>`;
    const trunks = load(`${minimal}    headers: { Identity: "${value}" }\n`);
    expect(trunks.get('acme')?.headers).toEqual({ Identity: value });
  });

  test.each([
    ['YAML that cannot be read', 'trunks:\n  - name: [', /^trunks\.yaml:\d+: /],
    ['no trunks', 'trunks: []\n', /^trunks\.yaml:1: trunks: /],
    ['an empty file', '', /^trunks\.yaml:1: file: /],
    [
      'a port out of range',
      minimal.replace('example\n', 'example\n        port: 70000\n'),
      /^trunks\.yaml:5: trunks\[0\]\.gateways\[0\]\.port: /,
    ],
    [
      'a gateway that is listed twice',
      `${minimal}      - host: sip.acme.example\n        port: 5060\n`,
      /^trunks\.yaml:5: trunks\[0\]\.gateways\[1\]: the list contains this gateway twice/,
    ],
    [
      'no gateway',
      'trunks:\n  - name: acme\n    gateways: []\n',
      /^trunks\.yaml:3: trunks\[0\]\.gateways: /,
    ],
    [
      'a weight below 0',
      minimal.replace('example\n', 'example\n        weight: -1\n'),
      /^trunks\.yaml:5: trunks\[0\]\.gateways\[0\]\.weight: /,
    ],
    [
      'health probes without a pause',
      `${minimal}    health:\n      intervalS: 0\n`,
      /^trunks\.yaml:6: trunks\[0\]\.health\.intervalS: /,
    ],
    [
      'an asserted identity that is not a URI',
      `${minimal}    assertedIdentity: "x\\r\\nVia: y"\n`,
      /^trunks\.yaml:5: trunks\[0\]\.assertedIdentity: must be `caller`, or a sip: or tel: URI/,
    ],
    [
      'an identity that is asserted twice',
      `${minimal}    assertedIdentity: caller\n    headers:\n      p-asserted-identity: x\n`,
      /^trunks\.yaml:7: trunks\[0\]\.headers\.p-asserted-identity: is set by assertedIdentity/,
    ],
    [
      'encrypted audio whose keys anybody on the path can read',
      `${minimal}    media: srtp-required\n`,
      /^trunks\.yaml:5: trunks\[0\]\.media: srtp-required needs transport: tls in every gateway/,
    ],
    [
      'a session timer below the minimum of RFC 4028',
      `${minimal}    sessionTimer: { expiresS: 60 }\n`,
      /^trunks\.yaml:5: trunks\[0\]\.sessionTimer\.expiresS: /,
    ],
    [
      'a session timer whose minimum is more than what it asks for',
      `${minimal}    sessionTimer: { expiresS: 300, minS: 600 }\n`,
      /^trunks\.yaml:5: trunks\[0\]\.sessionTimer\.minS: must not be more than expiresS/,
    ],
    [
      'a header that the session timer sets',
      `${minimal}    sessionTimer: {}\n    headers: { min-se: "90" }\n`,
      /^trunks\.yaml:6: trunks\[0\]\.headers\.min-se: is set by sessionTimer/,
    ],
    [
      'registration without credentials',
      `${minimal}    register: {}\n`,
      /^trunks\.yaml:5: trunks\[0\]\.register: needs auth: the gateway registers its username/,
    ],
    [
      'an account with two default trunks',
      `${minimal}    defaultFor: [a]\n${minimal.replace('trunks:\n', '').replace('acme', 'beta')}    defaultFor: [b, a]\n`,
      /^trunks\.yaml:9: trunks\[1\]\.defaultFor\[1\]: the account a already has a default trunk/,
    ],
    [
      'a default for an account that may not use it',
      `${minimal}    accounts: [a]\n    defaultFor: [b]\n`,
      /^trunks\.yaml:6: trunks\[0\]\.defaultFor\[0\]: the account b is not among its accounts/,
    ],
    ['an unknown field', `${minimal}    colour: red\n`, /^trunks\.yaml:\d: trunks\[0\]: .*colour/],
    [
      'a password that is not set',
      `${minimal}    auth:\n      username: a\n      passwordEnv: MISSING\n`,
      /^trunks\.yaml:7: trunks\[0\]\.auth\.passwordEnv: the variable MISSING is not set/,
    ],
    [
      'a password that is empty',
      `${minimal}    auth:\n      username: a\n      passwordEnv: EMPTY\n`,
      /the variable EMPTY is not set/,
    ],
    [
      'a password in the file',
      `${minimal}    auth:\n      username: a\n      password: hush\n`,
      /trunks\[0\]\.auth/,
    ],
    [
      'a header that breaks the message',
      `${minimal}    headers:\n      X-A: "1\\r\\nVia: x"\n`,
      /^trunks\.yaml:6: trunks\[0\]\.headers\.X-A: must be printable ASCII/,
    ],
    [
      'a header that SIP itself needs',
      `${minimal}    headers:\n      Contact: x\n`,
      /Contact: .*is set by the gateway itself/,
    ],
    [
      'an invalid host name',
      'trunks:\n  - name: acme\n    gateways:\n      - host: "a b"\n',
      /^trunks\.yaml:4: trunks\[0\]\.gateways\[0\]\.host: must be a host name/,
    ],
    [
      'a rate of 0',
      `${minimal}    callsPerSecond: 0\n`,
      /^trunks\.yaml:5: trunks\[0\]\.callsPerSecond: /,
    ],
    [
      'a fraction as the number of calls',
      `${minimal}    maxConcurrentCalls: 1.5\n`,
      /^trunks\.yaml:5: trunks\[0\]\.maxConcurrentCalls: /,
    ],
    [
      'two trunks with the same name',
      `${minimal}    default: true\n${minimal.replace('trunks:\n', '')}`,
      /^trunks\.yaml:6: trunks\[1\]\.name: there is another trunk named acme/,
    ],
    [
      'two trunks and no default',
      `${minimal}${minimal.replace('trunks:\n', '').replace('acme', 'beta')}`,
      /one trunk must have default: true/,
    ],
    [
      'two defaults',
      `${minimal}    default: true\n${minimal.replace('trunks:\n', '').replace('acme', 'beta')}    default: true\n`,
      /^trunks\.yaml:9: trunks\[1\]\.default: only one trunk may be the default/,
    ],
  ])('refuses %s, and names the line and the field', (_name, text, message) => {
    expect(() => load(text)).toThrow(message);
  });

  test('fills in the default health fields, and leaves health undefined if it is omitted', () => {
    expect(load(`${minimal}    health: {}\n`).default?.health).toEqual({
      intervalMs: 30_000,
      failThreshold: 3,
      recoverThreshold: 2,
    });
    expect(load(minimal).default).not.toHaveProperty('health');
  });

  test('needs no general default if accounts have their own default trunks', () => {
    const other = minimal.replace('trunks:\n', '').replace('acme', 'beta');

    const trunks = load(`${minimal}    defaultFor: [a]\n${other}    defaultFor: [b]\n`);

    expect(trunks.default).toBeUndefined();
    expect(trunks.defaultOf('b')?.name).toBe('beta');
    expect(trunks.defaultOf('c')).toBeUndefined();
  });

  test('does not make the only trunk the default of accounts that may not use it', () => {
    const trunks = load(`${minimal}    accounts: [a]\n`);

    expect(trunks.defaultOf('a')?.name).toBe('acme');
    expect(trunks.defaultOf('b')).toBeUndefined();
  });

  test('a replaced directory takes effect immediately', () => {
    const trunks = liveTrunks(load(minimal));

    trunks.replace(load(minimal.replace('acme\n', 'beta\n')));

    expect(trunks.get('acme')).toBeUndefined();
    expect(trunks.default?.name).toBe('beta');
    expect(trunks.defaultOf('anybody')?.name).toBe('beta');
    expect(trunks.all).toHaveLength(1);
  });

  test('reports all mistakes together', () => {
    const text = minimal
      .replace('acme\n', 'a b\n')
      .replace('example\n', 'example\n        port: 0\n');

    expect(() => load(text)).toThrow(
      /trunks\.yaml:2: trunks\[0\]\.name: [\s\S]*\ntrunks\.yaml:5: /,
    );
  });

  test('refuses a trunk with the name of the sandbox', () => {
    const sandbox = builtInTrunk('acme', { host: '127.0.0.1', transport: 'udp' });

    expect(() => load(minimal, [sandbox])).toThrow(/there is another trunk named acme/);
  });
});
