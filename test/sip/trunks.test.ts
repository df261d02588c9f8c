import { readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { readSecrets } from '../../src/config.ts';
import { builtInTrunk, loadTrunks } from '../../src/sip/trunks.ts';

const secrets = (names: readonly string[]) =>
  readSecrets(names, { ACME_SIP_PASSWORD: 'hush', EMPTY: '' });

function load(text: string, builtIn: Parameters<typeof loadTrunks>[0]['builtIn'] = []) {
  return loadTrunks({ file: { name: 'trunks.yaml', text }, secrets, builtIn });
}

const minimal = 'trunks:\n  - name: acme\n    gateways:\n      - host: sip.acme.example\n';

describe('trunks.yaml', () => {
  test('the example in the repository is valid', async () => {
    const text = await readFile(
      new URL('../../sip-config/trunks.example.yaml', import.meta.url),
      'utf8',
    );

    const trunks = load(text);

    expect(trunks.default).toEqual({
      name: 'acme',
      isDefault: true,
      gateways: [{ host: 'sip.acme.example', port: 5060, transport: 'udp' }],
      auth: { username: 'acme-account-42', password: 'hush' },
      numberFormat: 'e164',
      numberPrefix: '',
      headers: { 'X-Account': '42' },
      codecs: ['PCMU', 'PCMA'],
      limits: { callsPerSecond: 20, maxConcurrentCalls: 40 },
    });
    expect(trunks.get('backup')).toMatchObject({
      isDefault: false,
      gateways: [{ host: '192.0.2.10', transport: 'tcp' }],
      numberPrefix: '99',
      fromDomain: 'calls.example.com',
    });
  });

  test('the only trunk is the default, also beside the sandbox', () => {
    const sandbox = builtInTrunk('sandbox', { host: '127.0.0.1', port: 5070, transport: 'udp' });

    const trunks = load(minimal, [sandbox]);

    expect(trunks.default?.name).toBe('acme');
    expect(trunks.all.filter((trunk) => trunk.isDefault)).toHaveLength(1);
    expect(trunks.get('sandbox')?.gateways[0].port).toBe(5070);
  });

  test('without a file the built-in trunk is the default', () => {
    const sandbox = builtInTrunk('sandbox', { host: '127.0.0.1', transport: 'udp' });

    expect(loadTrunks({ secrets, builtIn: [sandbox] }).default?.name).toBe('sandbox');
    expect(loadTrunks({ secrets }).default).toBeUndefined();
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
      'two gateways',
      `${minimal}      - host: other.example\n`,
      /^trunks\.yaml:4: trunks\[0\]\.gateways: must have exactly one gateway/,
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
      'a host that is none',
      'trunks:\n  - name: acme\n    gateways:\n      - host: "a b"\n',
      /^trunks\.yaml:4: trunks\[0\]\.gateways\[0\]\.host: must be a host name/,
    ],
    [
      'a rate that lets nothing through',
      `${minimal}    callsPerSecond: 0\n`,
      /^trunks\.yaml:5: trunks\[0\]\.callsPerSecond: /,
    ],
    [
      'half a channel',
      `${minimal}    maxConcurrentCalls: 1.5\n`,
      /^trunks\.yaml:5: trunks\[0\]\.maxConcurrentCalls: /,
    ],
    [
      'two trunks of one name',
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
  ])('%s is refused with the line and the field', (_name, text, message) => {
    expect(() => load(text)).toThrow(message);
  });

  test('every mistake is told at once', () => {
    const text = minimal
      .replace('acme\n', 'a b\n')
      .replace('example\n', 'example\n        port: 0\n');

    expect(() => load(text)).toThrow(
      /trunks\.yaml:2: trunks\[0\]\.name: [\s\S]*\ntrunks\.yaml:5: /,
    );
  });

  test('a name of the sandbox is taken', () => {
    const sandbox = builtInTrunk('acme', { host: '127.0.0.1', transport: 'udp' });

    expect(() => load(minimal, [sandbox])).toThrow(/there is another trunk named acme/);
  });
});
