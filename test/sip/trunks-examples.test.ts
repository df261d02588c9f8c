import { readdir, readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { loadTrunks } from '../../src/sip/trunks/trunks.ts';

const folder = new URL('../../sip-config/trunks-examples/', import.meta.url);
const names = await readdir(folder);

const secrets = (variables: readonly string[]) =>
  Object.fromEntries(variables.map((variable) => [variable, 'hush']));

describe('the example trunks', () => {
  test.each(names)('%s loads', async (name) => {
    const text = await readFile(new URL(name, folder), 'utf8');

    const trunks = loadTrunks({ file: { name, text }, secrets });

    expect(trunks.all.length).toBeGreaterThan(0);
  });
});

const minimal = (lines: readonly string[], gateway = 'host: sip.acme.example') =>
  ['trunks:', '  - name: acme', '    gateways:', `      - { ${gateway} }`, ...lines, ''].join('\n');

describe('fields about registrars and proxies', () => {
  const load = (text: string, engine: 'embedded' | 'drachtio' = 'embedded') =>
    loadTrunks({ file: { name: 'trunks.yaml', text }, secrets, engine }).all[0];

  test.each([
    ['proxy.example', { host: 'proxy.example' }],
    ['proxy.example:5070', { host: 'proxy.example', port: 5_070 }],
    ['192.0.2.1:5070', { host: '192.0.2.1', port: 5_070 }],
    ["'2001:db8::1'", { host: '2001:db8::1' }],
    ["'[2001:db8::1]'", { host: '2001:db8::1' }],
    ["'[2001:db8::1]:5070'", { host: '2001:db8::1', port: 5_070 }],
  ])('outboundProxy and publicSipHost accept %s', (text, place) => {
    const trunk = load(minimal([`    outboundProxy: ${text}`, `    publicSipHost: ${text}`]));

    expect(trunk).toMatchObject({ outboundProxy: place, publicSipHost: place });
  });

  test.each([
    ["outboundProxy: 'sip:proxy.example'", /outboundProxy: must be host or host:port/],
    ["outboundProxy: 'proxy.example:0'", /outboundProxy: must be host or host:port/],
    ["outboundProxy: '[proxy.example]:5060'", /outboundProxy: must be host or host:port/],
    ["outboundProxy: ''", /outboundProxy: must be host or host:port/],
    ["publicSipHost: 'a b'", /publicSipHost: must be host or host:port/],
    ["user: 'a b'", /user: must be printable ASCII without spaces/],
    ['keepalive: stun', /keepalive/],
    ['localAddress: sbc.example', /localAddress: must be an IP address/],
    ['localAddress: 192.0.2.77', /localAddress: 192\.0\.2\.77 is not an address of this host/],
    ['keepalive: crlf', /keepalive: crlf needs transport: tcp or tls at each gateway/],
  ])('refuses %s', (line, message) => {
    expect(() => load(minimal([`    ${line}`]))).toThrow(message);
  });

  test('localAddress needs the embedded engine', () => {
    const text = minimal(['    localAddress: 127.0.0.2']);

    expect(load(text)).toMatchObject({ localAddress: '127.0.0.2' });
    expect(() => load(text, 'drachtio')).toThrow(
      /localAddress: is for the embedded SIP engine. drachtio-server \(DRACHTIO_URL\) chooses/,
    );
  });

  test('keepalive: crlf needs the embedded engine', () => {
    const text = minimal(['    keepalive: crlf'], 'host: sip.acme.example, transport: tcp');

    expect(load(text)).toMatchObject({ keepalive: 'crlf' });
    expect(() => load(text, 'drachtio')).toThrow(
      /keepalive: crlf is for the embedded SIP engine, because drachtio-server/,
    );
  });
});
