// The public keys that an app may register.

import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import {
  type PublicKeyAlgorithm,
  parsePublicKeys,
  readVerificationKeys,
} from '../../../src/store/apps/jwt-keys.ts';

const rsa = generateKeyPairSync('rsa', { modulusLength: 2_048 });
const weakRsa = generateKeyPairSync('rsa', { modulusLength: 2_047 });
const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const p384 = generateKeyPairSync('ec', { namedCurve: 'P-384' });
const ed25519 = generateKeyPairSync('ed25519');

const pem = (key: KeyObject): string => key.export({ type: 'spki', format: 'pem' }).toString();
const pkcs8 = (key: KeyObject): string => key.export({ type: 'pkcs8', format: 'pem' }).toString();
const jwk = (key: KeyObject, more: object = {}): object => ({
  ...key.export({ format: 'jwk' }),
  ...more,
});
const jwks = (...keys: readonly object[]): string => JSON.stringify({ keys });

function parsed(text: string, algorithm: PublicKeyAlgorithm) {
  const result = parsePublicKeys(text, algorithm);
  if (!result.ok) throw new Error(result.message);
  return readVerificationKeys(result.jwks);
}

describe('a public key', () => {
  test.each<[PublicKeyAlgorithm, KeyObject]>([
    ['RS256', rsa.publicKey],
    ['ES256', p256.publicKey],
    ['EdDSA', ed25519.publicKey],
  ])('for %s is read from PEM, a JWK and a JWKS', (algorithm, key) => {
    for (const text of [pem(key), JSON.stringify(jwk(key)), jwks(jwk(key))]) {
      const keys = parsed(text, algorithm);
      expect(keys.map((read) => read.key.equals(key))).toEqual([true]);
      expect(keys[0]?.kid).toBeUndefined();
    }
  });

  test('of a JWKS keeps its `kid`, and keys for other algorithms are omitted', () => {
    const text = jwks(
      jwk(rsa.publicKey, { kid: 'now', use: 'sig', alg: 'RS256' }),
      jwk(rsa.publicKey, { kid: 'encrypts', use: 'enc' }),
      jwk(rsa.publicKey, { kid: 'another', alg: 'PS256' }),
      jwk(p256.publicKey, { kid: 'curve' }),
    );

    expect(parsed(text, 'RS256').map(({ kid }) => kid)).toEqual(['now']);
    expect(parsed(text, 'ES256').map(({ kid }) => kid)).toEqual(['curve']);
  });

  test('is stored without any other member', () => {
    const text = jwks(jwk(ed25519.publicKey, { kid: 'a', 'x-note': 'hush' }));
    const result = parsePublicKeys(text, 'EdDSA');

    expect(result).toEqual({ ok: true, jwks: jwks(jwk(ed25519.publicKey, { kid: 'a' })) });
  });

  const many = Array.from({ length: 11 }, (_, index) =>
    jwk(ed25519.publicKey, { kid: `${index}` }),
  );
  test.each<[string, string, PublicKeyAlgorithm, RegExp]>([
    ['an RSA key that is too short', pem(weakRsa.publicKey), 'RS256', /2047 bits; at least 2048/],
    [
      'an RSA key that is too short, in a JWKS',
      jwks(jwk(weakRsa.publicKey)),
      'RS256',
      /2047 bits; at least 2048/,
    ],
    [
      'a key of another kind',
      pem(p256.publicKey),
      'RS256',
      /is of the wrong type: RS256 needs RSA/,
    ],
    [
      'a key of another curve',
      pem(p384.publicKey),
      'ES256',
      /is of the wrong type: ES256 needs P-256/,
    ],
    ['no key of the kind', jwks(jwk(p384.publicKey)), 'ES256', /no P-256 key for ES256/],
    ['no key', jwks(), 'EdDSA', /no Ed25519 key for EdDSA/],
    ['a private key', pkcs8(rsa.privateKey), 'RS256', /private or shared key/],
    ['a private JWK', JSON.stringify(jwk(ed25519.privateKey)), 'EdDSA', /private or shared key/],
    ['a private JWK in a set', jwks(jwk(p256.privateKey)), 'ES256', /private or shared key/],
    ['a shared secret', jwks({ kty: 'oct', k: 'c2VjcmV0' }), 'ES256', /private or shared key/],
    [
      'two keys with one `kid`',
      jwks(jwk(ed25519.publicKey, { kid: 'a' }), jwk(ed25519.publicKey, { kid: 'a' })),
      'EdDSA',
      /two keys with the same `kid`/,
    ],
    ['more keys than anyone needs', jwks(...many), 'EdDSA', /more than 10 keys/],
    [
      'a point that is not on the curve',
      jwks({ ...jwk(p256.publicKey), y: 'AAAA' }),
      'ES256',
      /not a public key/,
    ],
    ['something else', 'ssh-ed25519 AAAA', 'EdDSA', /not a public key in PEM, JWK or JWKS/],
    ['half a JWKS', '{"keys":[', 'EdDSA', /not a public key/],
    ['a very long document', `{"keys":[${' '.repeat(70_000)}]}`, 'EdDSA', /longer than 64 KiB/],
  ])('that is %s is refused with a reason', (_name, text, algorithm, reason) => {
    expect(parsePublicKeys(text, algorithm)).toEqual({
      ok: false,
      message: expect.stringMatching(reason) as string,
    });
  });
});
