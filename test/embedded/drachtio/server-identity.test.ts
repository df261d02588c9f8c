// Whether a certificate counts for a host: RFC 5922, section 7.

import type { PeerCertificate } from 'node:tls';
import { describe, expect, test } from 'vitest';
import { checkSipIdentity } from '../../../src/embedded/drachtio/transport/server-identity.ts';

function certificate(subjectaltname: string | undefined, commonName?: string): PeerCertificate {
  const subject = commonName === undefined ? {} : { CN: commonName };
  return { subject, subjectaltname } as PeerCertificate;
}

describe('a certificate is for a host', () => {
  test.each([
    ['gw.example', 'DNS:gw.example'],
    ['GW.example', 'DNS:gw.EXAMPLE'],
    ['gw.example', 'DNS:other.example, DNS:gw.example'],
    ['gw.example', 'URI:sip:gw.example'],
    ['gw.example', 'URI:SIP:Gw.Example'],
    ['gw.carrier.example', 'DNS:*.carrier.example'],
    ['192.0.2.1', 'IP Address:192.0.2.1'],
    ['2001:db8::1', 'IP Address:2001:DB8:0:0:0:0:0:1'],
  ])('%s: %s', (name, names) => {
    expect(checkSipIdentity(name, certificate(names))).toBeUndefined();
  });

  test('by its common name, if it has no other names', () => {
    expect(checkSipIdentity('gw.example', certificate(undefined, 'gw.example'))).toBeUndefined();
  });
});

describe('a certificate is not for a host', () => {
  test.each([
    ['gw.example', 'DNS:gw.example.evil', 'certificate is for gw.example.evil, not for gw.example'],
    ['a.b.example', 'DNS:*.example', 'certificate is for *.example, not for a.b.example'],
    ['gw.example', 'URI:sips:gw.example', 'certificate is for sips:gw.example, not for gw.example'],
    [
      'gw.example',
      'URI:sip:me@gw.example',
      'certificate is for sip:me@gw.example, not for gw.example',
    ],
    ['192.0.2.1', 'DNS:192.0.2.1', 'certificate is for 192.0.2.1, not for 192.0.2.1'],
    [
      'gw.example',
      'DNS:"x, URI:sip:gw.example"',
      'certificate has no name, and is not for gw.example',
    ],
  ])('%s: %s', (name, names, message) => {
    expect(checkSipIdentity(name, certificate(names))?.message).toBe(message);
  });

  test('by its common name, if it has other names', () => {
    const other = certificate('DNS:other.example', 'gw.example');
    expect(checkSipIdentity('gw.example', other)?.message).toBe(
      'certificate is for other.example, not for gw.example',
    );
  });

  test('and what the far end wrote stays short and printable', () => {
    const names = Array.from({ length: 200 }, (_, index) => `DNS:h${index}.\u0007\r.example`);
    const { message = '' } = checkSipIdentity('gw.example', certificate(names.join(', '))) ?? {};
    expect(message).toMatch(/^[\x20-\x7e]{1,200}$/);
  });
});
