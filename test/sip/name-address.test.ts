// The display name in From and P-Asserted-Identity: quoting, and what drachtio-server can take.

import { describe, expect, test } from 'vitest';
import { uriOf } from '../../src/sip/sip-headers.ts';
import { fromHeader, nameAddress } from '../../src/sip/trunks/name-address.ts';

describe('a display name', () => {
  test.each([
    ['Ada Lovelace', '"Ada Lovelace" <sip:1@a.example>'],
    ['Ada "the first" \\o/', '"Ada \\"the first\\" \\\\o/" <sip:1@a.example>'],
    ['Größe, 株式会社 📞', '"Größe, 株式会社 📞" <sip:1@a.example>'],
    ['<sip:evil@b.example>;tag=1', '"<sip:evil@b.example>;tag=1" <sip:1@a.example>'],
  ])('%s is written as a quoted string', (name, value) => {
    expect(nameAddress(name, 'sip:1@a.example')).toBe(value);
    expect(uriOf(value)).toBe('sip:1@a.example');
  });

  test('may be missing', () => {
    expect(nameAddress(undefined, 'sip:1@a.example')).toBe('<sip:1@a.example>');
    expect(fromHeader(undefined, '1', undefined)).toBe('<sip:1@localhost>');
  });

  test('never contains the word that the engines replace', () => {
    const value = nameAddress('me@localhost', 'sip:1@a.example');
    expect(value).toBe('"me@l\\ocalhost" <sip:1@a.example>');
  });
});

describe('From without a domain', () => {
  const longest = '株'.repeat(80);

  test('keeps a name that drachtio-server can copy', () => {
    const name = 'Ж'.repeat(80);
    expect(fromHeader(name, '+15551234567', undefined)).toBe(
      `"${name}" <sip:+15551234567@localhost>`,
    );
  });

  test('is cut between characters to the size that drachtio-server can copy', () => {
    const value = fromHeader(longest, '+15551234567', undefined);
    expect(Buffer.byteLength(value)).toBeLessThanOrEqual(200);
    expect(value).toMatch(/^"株{40,}" <sip:\+15551234567@localhost>$/);
    expect(fromHeader('"'.repeat(80), 'a'.repeat(128), undefined)).toMatch(/^"(\\"){20,}" <sip:a/);
  });

  test('keeps the whole name with a domain', () => {
    expect(fromHeader(longest, '1', 'a.example')).toBe(`"${longest}" <sip:1@a.example>`);
  });
});
