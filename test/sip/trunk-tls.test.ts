// The `tls` options of a trunk, and the files that they name.

import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readTrunkFile, trunksOf } from '../../src/sip/trunks/trunk-file.ts';
import { nextHopUri } from '../../src/sip/trunks/trunk-uris.ts';
import { type Certificate, createCa, type TestCa } from '../support/certificates.ts';

let folder: string;
let ca: TestCa;
let client: Certificate;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'offhook-trunk-tls-'));
  ca = await createCa(folder, 'ca');
  client = await ca.issue('client');
  const other = await ca.issue('other');
  const write = (name: string, text: string) => writeFile(join(folder, name), text);
  await write('empty.pem', '');
  await write(
    'broken.pem',
    `${readFileSync(ca.ca, 'utf8')}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n`,
  );
  await write('other-key.pem', readFileSync(other.key, 'utf8'));
  await promisify(execFile)('openssl', [
    ...['pkcs8', '-topk8', '-in', client.key, '-out', join(folder, 'encrypted.pem')],
    ...['-passout', 'pass:secret'],
  ]);
});

afterAll(() => rm(folder, { recursive: true }));

type Load = { readonly transport?: string; readonly isDrachtio?: boolean };

/** Loads a file with one trunk, whose `tls` has these lines. */
async function load(
  lines: readonly string[],
  { transport = 'tls', isDrachtio = false }: Load = {},
) {
  const trunksFile = join(folder, 'trunks.yaml');
  await writeFile(
    trunksFile,
    [
      'trunks:',
      '  - name: acme',
      '    gateways:',
      '      - host: sip.acme.example',
      `        transport: ${transport}`,
      ...(lines.length === 0 ? [] : ['    tls:', ...lines.map((line) => `      ${line}`)]),
      '',
    ].join('\n'),
  );
  const drachtioServers = isDrachtio
    ? [{ host: '127.0.0.1', port: 9_022, secret: 'x' }]
    : undefined;
  return trunksOf(
    { drachtioServers },
    { file: await readTrunkFile({ trunksFile }), sandbox: undefined, secrets: () => ({}) },
  ).default;
}

describe('the tls options of a trunk', () => {
  test('are read from files beside the trunks file', async () => {
    const trunk = await load([
      'caFile: ca.pem',
      'certFile: ca-client.pem',
      `keyFile: ${client.key}`,
      'serverName: trunks.acme.example',
    ]);
    expect(trunk?.tls).toEqual({
      ca: readFileSync(ca.ca, 'utf8'),
      cert: readFileSync(client.cert, 'utf8'),
      key: readFileSync(client.key, 'utf8'),
      serverName: 'trunks.acme.example',
    });
  });

  test('have defaults, so that the engine knows the trunk', async () => {
    expect((await load([]))?.tls).toEqual({});
    expect(await load([], { transport: 'tcp' })).not.toHaveProperty('tls');
    expect(await load([], { isDrachtio: true })).not.toHaveProperty('tls');
  });

  test.each([
    ['a missing file', ['caFile: nowhere.pem'], 'caFile: cannot be read: ENOENT'],
    [
      'a file without a certificate',
      ['caFile: empty.pem'],
      'caFile: contains no certificate in PEM format',
    ],
    [
      'a key in place of a certificate',
      ['caFile: ca-key.pem'],
      'caFile: contains no certificate in PEM format',
    ],
    [
      'a broken certificate',
      ['caFile: broken.pem'],
      'caFile: certificate 2 in the file cannot be read',
    ],
    [
      'a certificate without its key',
      ['certFile: ca-client.pem'],
      'certFile: needs keyFile, its private key',
    ],
    [
      'a key without its certificate',
      ['keyFile: ca-client-key.pem'],
      'keyFile: needs certFile, the certificate of this key',
    ],
    [
      'the key of another certificate',
      ['certFile: ca-client.pem', 'keyFile: other-key.pem'],
      'keyFile: is not the key of the certificate in certFile',
    ],
    [
      'an encrypted key',
      ['certFile: ca-client.pem', 'keyFile: encrypted.pem'],
      'keyFile: contains an encrypted key',
    ],
    [
      'a certificate in place of a key',
      ['certFile: ca-client.pem', 'keyFile: ca.pem'],
      'keyFile: contains no private key in PEM format',
    ],
  ] as const)('refuse %s, and name the field', async (_name, lines, message) => {
    await expect(load(lines)).rejects.toThrow(`trunks[0].tls.${message}`);
    await expect(load(lines)).rejects.toThrow(/^trunks\.yaml:[78]: /);
  });

  test('refuse an option that would skip the verification', async () => {
    await expect(load(['rejectUnauthorized: false'])).rejects.toThrow(
      /trunks\[0\]\.tls.*rejectUnauthorized/,
    );
  });

  test('need a TLS gateway', async () => {
    await expect(load(['caFile: ca.pem'], { transport: 'tcp' })).rejects.toThrow(
      'trunks[0].tls: needs a gateway with transport: tls',
    );
  });

  test('are refused with drachtio-server, which has its own', async () => {
    await expect(load(['caFile: ca.pem'], { isDrachtio: true })).rejects.toThrow(
      'trunks[0].tls: is for the embedded SIP engine. drachtio-server (DRACHTIO_URL) has its own settings',
    );
  });
});

describe('the next hop to a TLS gateway', () => {
  const gateway = {
    host: 'sip.acme.example',
    port: 5_061,
    transport: 'tls',
    priority: 1,
    weight: 1,
  } as const;

  test('names the trunk and the host to verify, also for a resolved address', () => {
    const trunk = { name: 'acme', tls: {} };
    const identity = ';transport=tls;tls-trunk=acme;tls-host=sip.acme.example';
    expect(nextHopUri(trunk, gateway)).toBe(`sip:sip.acme.example:5061${identity}`);
    expect(nextHopUri(trunk, gateway, { host: '192.0.2.1', port: 5_071, transport: 'tls' })).toBe(
      `sip:192.0.2.1:5071${identity}`,
    );
  });

  test('has no such parameters over other transports, or for drachtio-server', () => {
    expect(nextHopUri({ name: 'acme' }, gateway)).toBe('sip:sip.acme.example:5061;transport=tls');
    expect(nextHopUri({ name: 'acme', tls: {} }, { ...gateway, transport: 'tcp' })).toBe(
      'sip:sip.acme.example:5061;transport=tcp',
    );
  });
});
