import { describe, expect, test } from 'vitest';
import { newCryptoLines, readCrypto, writeCrypto } from '../../../src/media/srtp/sdes.ts';

const inline = 'd0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj';

describe('reading a=crypto', () => {
  test.each([
    ['a key', `1 AES_CM_128_HMAC_SHA1_80 inline:${inline}`],
    ['a lifetime', `1 AES_CM_128_HMAC_SHA1_80 inline:${inline}|2^20`],
    ['a hint about the window', `1 AES_CM_128_HMAC_SHA1_80 inline:${inline}|2^20 WSH=64`],
    ['a lifetime in digits', `1 AES_CM_128_HMAC_SHA1_80 inline:${inline}|1048576`],
    ['an optional parameter', `1 AES_CM_128_HMAC_SHA1_80 inline:${inline} -X.carrier=1`],
    ['the short tag', `22 AES_CM_128_HMAC_SHA1_32 inline:${inline}`],
  ])('accepts %s', (_title, line) => {
    const read = readCrypto(line);
    expect(read?.tag).toBe(Number.parseInt(line, 10));
    expect(Buffer.from(read?.key.keyAndSalt ?? []).toString('base64')).toBe(inline);
  });

  test.each([
    ['an MKI', `1 AES_CM_128_HMAC_SHA1_80 inline:${inline}|2^20|1:4`],
    ['an MKI without a lifetime', `1 AES_CM_128_HMAC_SHA1_80 inline:${inline}|1:4`],
    ['no lifetime after the bar', `1 AES_CM_128_HMAC_SHA1_80 inline:${inline}|`],
    ['a lifetime of nothing', `1 AES_CM_128_HMAC_SHA1_80 inline:${inline}|0`],
    ['an unknown lifetime', `1 AES_CM_128_HMAC_SHA1_80 inline:${inline}|forever`],
    ['several keys', `1 AES_CM_128_HMAC_SHA1_80 inline:${inline};inline:${inline}`],
    ['unencrypted packets', `1 AES_CM_128_HMAC_SHA1_80 inline:${inline} UNENCRYPTED_SRTP`],
    ['unencrypted reports', `1 AES_CM_128_HMAC_SHA1_80 inline:${inline} UNENCRYPTED_SRTCP`],
    ['unauthenticated packets', `1 AES_CM_128_HMAC_SHA1_80 inline:${inline} UNAUTHENTICATED_SRTP`],
    ['an unknown parameter', `1 AES_CM_128_HMAC_SHA1_80 inline:${inline} X.carrier=1`],
    ['error correction', `1 AES_CM_128_HMAC_SHA1_80 inline:${inline} FEC_ORDER=FEC_SRTP`],
    ['another rate of derivation', `1 AES_CM_128_HMAC_SHA1_80 inline:${inline} KDR=1`],
    ['another suite', `1 AEAD_AES_256_GCM inline:${inline}`],
    ['a short key', '1 AES_CM_128_HMAC_SHA1_80 inline:d0RmdmcmVCspeEc3QGZi'],
    ['a long key', `1 AES_CM_128_HMAC_SHA1_80 inline:${inline}AAAA`],
    ['a key with other characters', `1 AES_CM_128_HMAC_SHA1_80 inline:${inline.slice(0, -1)}!`],
    ['a padded key', `1 AES_CM_128_HMAC_SHA1_80 inline:${inline.slice(0, -2)}==`],
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
