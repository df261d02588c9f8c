import { describe, expect, test } from 'vitest';
import { newCryptoLines, readCrypto, writeCrypto } from '../../../src/media/srtp/sdes.ts';

const inline = 'd0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj';

describe('reading a=crypto', () => {
  test.each([
    ['a key', `1 AES_CM_128_HMAC_SHA1_80 inline:${inline}`],
    ['a lifetime', `1 AES_CM_128_HMAC_SHA1_80 inline:${inline}|2^20`],
    ['a hint about the window', `1 AES_CM_128_HMAC_SHA1_80 inline:${inline}|2^20 WSH=64`],
    ['the short tag', `22 AES_CM_128_HMAC_SHA1_32 inline:${inline}`],
  ])('accepts %s', (_title, line) => {
    const read = readCrypto(line);
    expect(read?.tag).toBe(Number.parseInt(line, 10));
    expect(Buffer.from(read?.key.keyAndSalt ?? []).toString('base64')).toBe(inline);
  });

  test.each([
    ['an MKI', `1 AES_CM_128_HMAC_SHA1_80 inline:${inline}|2^20|1:4`],
    ['an MKI without a lifetime', `1 AES_CM_128_HMAC_SHA1_80 inline:${inline}|1:4`],
    ['several keys', `1 AES_CM_128_HMAC_SHA1_80 inline:${inline};inline:${inline}`],
    ['unencrypted packets', `1 AES_CM_128_HMAC_SHA1_80 inline:${inline} UNENCRYPTED_SRTP`],
    ['another rate of derivation', `1 AES_CM_128_HMAC_SHA1_80 inline:${inline} KDR=1`],
    ['another suite', `1 AEAD_AES_256_GCM inline:${inline}`],
    ['a short key', '1 AES_CM_128_HMAC_SHA1_80 inline:d0RmdmcmVCspeEc3QGZi'],
    ['no key', '1 AES_CM_128_HMAC_SHA1_80'],
    ['nothing', ''],
    ['a long line', `1 AES_CM_128_HMAC_SHA1_80 inline:${'A'.repeat(10_000)}`],
  ])('refuses %s', (_title, line) => {
    expect(readCrypto(line)).toBeUndefined();
  });
});

test('each line that we write has another key, and can be read', () => {
  const lines = newCryptoLines();

  expect(lines.map(writeCrypto).map(readCrypto)).toEqual(lines);
  expect(new Set(lines.map(({ key }) => String(key.keyAndSalt))).size).toBe(2);
  expect(lines.map(({ key }) => key.suite)).toEqual([
    'AES_CM_128_HMAC_SHA1_80',
    'AES_CM_128_HMAC_SHA1_32',
  ]);
});
