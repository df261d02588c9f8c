// The public keys that verify an app's tokens. Accepts PEM, JWK or JWKS, and produces a JWKS
// document that contains only sufficiently strong public keys of one algorithm.

import { createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto';
import { z } from 'zod';
import type { JwtAlgorithm } from './app-directory.ts';

const kinds = {
  RS256: { name: 'RSA', kty: 'RSA', curve: undefined },
  ES256: { name: 'P-256', kty: 'EC', curve: 'P-256' },
  EdDSA: { name: 'Ed25519', kty: 'OKP', curve: 'Ed25519' },
} as const;

export type PublicKeyAlgorithm = keyof typeof kinds;

export type VerificationKey = {
  /** Undefined if the key has no id. Such a key can verify tokens with any `kid`. */
  readonly kid?: string;
  readonly key: KeyObject;
};

/**
 * Issuers usually publish the current, the next and the last key. Each additional key costs another
 * check for tokens without `kid`.
 */
const maxKeys = 10;
/** Large enough for ten 8192-bit RSA keys with their certificates. */
export const maxKeyDocumentChars = 64 * 1_024;
/** RFC 7518 section 3.3. */
const minRsaBits = 2_048;

const jwkSchema = z.looseObject({
  kty: z.string(),
  /**
   * Fields of private and shared keys. The parser only looks for these fields to reject such keys.
   */
  d: z.unknown().optional(),
  k: z.unknown().optional(),
  crv: z.string().optional(),
  kid: z.string().min(1).max(256).optional(),
  use: z.string().optional(),
  alg: z.string().optional(),
});
const jwksSchema = z.object({ keys: z.array(jwkSchema) });
type Jwk = z.infer<typeof jwkSchema>;

export type ParsedKeys =
  | { readonly ok: true; readonly jwks: string }
  | { readonly ok: false; readonly message: string };

export function isPublicKeyAlgorithm(algorithm: JwtAlgorithm): algorithm is PublicKeyAlgorithm {
  return algorithm in kinds;
}

/** Parses an operator's PEM public key or certificate, JWK, or JWKS document. */
export function parsePublicKeys(text: string, algorithm: PublicKeyAlgorithm): ParsedKeys {
  try {
    if (text.length > maxKeyDocumentChars) throw new KeyProblem('is longer than 64 KiB');
    const keys = text.trimStart().startsWith('{') ? fromJson(text, algorithm) : [fromPem(text)];
    for (const { key } of keys) assertStrong(key, algorithm);
    const kids = keys.flatMap(({ kid }) => kid ?? []);
    if (new Set(kids).size < kids.length) throw new KeyProblem('has two keys with the same `kid`');
    return { ok: true, jwks: JSON.stringify({ keys: keys.map(toJwk) }) };
  } catch (error) {
    if (error instanceof KeyProblem) return { ok: false, message: error.message };
    // For unreadable keys, node:crypto's messages describe OpenSSL internals.
    return { ok: false, message: 'is not a public key in PEM, JWK or JWKS' };
  }
}

/** Reads a document that `parsePublicKeys` returned. */
export function readVerificationKeys(jwks: string): readonly VerificationKey[] {
  return jwksSchema.parse(JSON.parse(jwks)).keys.map(readJwk);
}

class KeyProblem extends Error {}

function fromPem(text: string): VerificationKey {
  if (text.includes('PRIVATE KEY')) throw privateKey();
  return { key: createPublicKey(text) };
}

function fromJson(text: string, algorithm: PublicKeyAlgorithm): readonly VerificationKey[] {
  const document: unknown = JSON.parse(text);
  const whole = jwksSchema.safeParse(document);
  const all = whole.success ? whole.data.keys : [jwkSchema.parse(document)];
  if (all.some(({ d, k }) => d !== undefined || k !== undefined)) throw privateKey();
  const { name, kty, curve } = kinds[algorithm];
  // An issuer's document may contain keys for encryption, or for algorithms that this app doesn't
  // use.
  const fitting = all.filter(
    (jwk) =>
      jwk.kty === kty &&
      jwk.crv === curve &&
      (jwk.use ?? 'sig') === 'sig' &&
      (jwk.alg ?? algorithm) === algorithm,
  );
  if (fitting.length === 0) throw new KeyProblem(`holds no ${name} key for ${algorithm}`);
  if (fitting.length > maxKeys) throw new KeyProblem(`holds more than ${maxKeys} keys`);
  return fitting.map(readJwk);
}

function readJwk(jwk: Jwk): VerificationKey {
  const { kid } = jwk;
  const key = createPublicKey({ key: jwk as JsonWebKey, format: 'jwk' });
  return { key, ...(kid === undefined ? {} : { kid }) };
}

function assertStrong(key: KeyObject, algorithm: PublicKeyAlgorithm): void {
  const { name, kty, curve } = kinds[algorithm];
  const jwk = key.export({ format: 'jwk' });
  if (jwk.kty !== kty || jwk.crv !== curve)
    throw new KeyProblem(`is of the wrong type: ${algorithm} needs ${name}`);
  const bits = key.asymmetricKeyDetails?.modulusLength ?? minRsaBits;
  if (bits < minRsaBits) {
    throw new KeyProblem(`is an RSA key of ${bits} bits; at least ${minRsaBits} are needed`);
  }
}

function toJwk({ kid, key }: VerificationKey): object {
  return { ...key.export({ format: 'jwk' }), ...(kid === undefined ? {} : { kid }) };
}

function privateKey(): KeyProblem {
  return new KeyProblem(
    'is a private or shared key: keep it secret, and provide only the public key',
  );
}
