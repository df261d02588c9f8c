// Finds the app that signed a token. Until the signature is verified, all rejections look the same
// and take about the same time. That's why we check the signature against a decoy key if the app is
// unknown, or if the token's algorithm isn't the one that the app registered.

import {
  createPublicKey,
  createSecretKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto';
import { decodeJwt, decodeProtectedHeader, errors, type JWTPayload, jwtVerify } from 'jose';
import { LRUCache } from 'lru-cache';
import { jwtKeyId } from '../store/apps/app-credentials.ts';
import {
  type App,
  type AppDirectory,
  type JwtAlgorithm,
  jwtAlgorithms,
} from '../store/apps/app-directory.ts';
import {
  isPublicKeyAlgorithm,
  readVerificationKeys,
  type VerificationKey,
} from '../store/apps/jwt-keys.ts';
import { clockToleranceS, describeClaimError } from './token-claims.ts';

const maxAppIdLength = 128;
/**
 * We cache this many verified tokens, because dialers usually send the same token with each request
 * until it expires. The cache uses at most 4 MB.
 */
const maxCachedTokens = 1_000;
/** Tokens with more characters than this are unusual, so we don't cache them. */
const maxCachedChars = 2_000;

export type VerifiedToken =
  /** jose has also checked `exp` and `nbf`, and that all times are numbers. */
  | {
      readonly kind: 'verified';
      readonly app: App;
      readonly claims: JWTPayload;
      /** Id of the app's key that verified the signature. */
      readonly keyId: string;
    }
  | { readonly kind: 'wrong-claim'; readonly message: string; readonly cause: unknown }
  /** The sender could be anyone. */
  | { readonly kind: 'unverified'; readonly cause?: unknown };

export type TokenVerifier = (token: string) => Promise<VerifiedToken>;

export function createTokenVerifier(apps: AppDirectory): TokenVerifier {
  return cached(apps, createVerifier(apps));
}

type Verified = Extract<VerifiedToken, { kind: 'verified' }>;

/**
 * Caches verified tokens. If an app is changed or revoked, the directory returns a different object
 * or undefined, which means that the token has to be verified again.
 */
function cached(apps: AppDirectory, verify: TokenVerifier): TokenVerifier {
  const known = new LRUCache<string, Verified>({ max: maxCachedTokens });
  return async (text) => {
    const before = known.get(text);
    if (before !== undefined && !hasExpired(before.claims)) {
      if ((await apps.find(before.app.appId)) === before.app) return before;
      known.delete(text);
    }
    const token = await verify(text);
    if (token.kind === 'verified' && text.length <= maxCachedChars) known.set(text, token);
    return token;
  };
}

function createVerifier(apps: AppDirectory): TokenVerifier {
  // The directory caches each `App` object for a few seconds, so we import the keys once per
  // object.
  const imported = new WeakMap<App, readonly AppKey[]>();
  const keysOf = (app: App): readonly AppKey[] => {
    const keys = imported.get(app) ?? importKeys(app);
    imported.set(app, keys);
    return keys;
  };
  const decoyKeys = makeDecoyKeys();

  return async (token) => {
    const hints = readHints(token);
    if (hints === undefined) return { kind: 'unverified' };
    const { appId, algorithm, kid } = hints;
    const app = await apps.find(appId);
    const keys = app?.jwtAlgorithm === algorithm ? candidates(keysOf(app), kid) : [];
    if (app === undefined || keys.length === 0) {
      await verifyWithAny(token, algorithm, [{ id: '', key: decoyKeys[algorithm] }]);
      return { kind: 'unverified' };
    }
    const { claims, keyId, error } = await verifyWithAny(token, algorithm, keys);
    if (claims !== undefined) return { kind: 'verified', app, claims, keyId };
    const message = describeClaimError(error);
    return message === undefined
      ? { kind: 'unverified', cause: error }
      : { kind: 'wrong-claim', message, cause: error };
  };
}

/**
 * Compares whole seconds, as jose does. We don't need to check `nbf` again, because it was already
 * in the past when the token was verified.
 */
function hasExpired({ exp = 0 }: JWTPayload): boolean {
  return exp <= Math.floor(Date.now() / 1_000) - clockToleranceS;
}

/** What an unverified token claims about its app and key. None of it can be trusted. */
type Hints = {
  readonly appId: string;
  readonly algorithm: JwtAlgorithm;
  readonly kid: string | undefined;
};

/** Reads the untrusted token to find the app and key that can verify it. */
function readHints(token: string): Hints | undefined {
  if (!token.split('.').every(isCanonical)) return undefined;
  try {
    const { alg, kid } = decodeProtectedHeader(token) as { alg?: unknown; kid?: unknown };
    const algorithm = jwtAlgorithms.find((name) => name === alg);
    const appId = decodeJwt(token)['appId'];
    if (algorithm === undefined || typeof appId !== 'string') return undefined;
    // An id that contains NUL would cause a database error instead of an unknown app.
    if (appId.length > maxAppIdLength || !/^[\x21-\x7e]+$/.test(appId)) return undefined;
    return { appId, algorithm, kid: typeof kid === 'string' ? kid : undefined };
  } catch {
    return undefined;
  }
}

/**
 * Checks that a part is base64url without padding (RFC 7515 section 2), with zero bits beyond the
 * last byte (RFC 4648 section 3.5). Otherwise one token could be written in many ways, and slip
 * past a list of revoked tokens.
 */
function isCanonical(part: string): boolean {
  return Buffer.from(part, 'base64url').toString('base64url') === part;
}

/** `id` identifies the secret, or the document that contains the key. */
type AppKey = VerificationKey & { readonly id: string };

function importKeys({ jwtAlgorithm, jwtKeys }: App): readonly AppKey[] {
  return jwtKeys.flatMap((text) => {
    const keys: readonly VerificationKey[] = isPublicKeyAlgorithm(jwtAlgorithm)
      ? readVerificationKeys(text)
      : [{ key: createSecretKey(text, 'utf8') }];
    const id = jwtKeyId(text);
    return keys.map((key) => ({ ...key, id }));
  });
}

/** Returns the keys that match a token's `kid`. Keys registered without a `kid` match any token. */
function candidates(keys: readonly AppKey[], kid: string | undefined): readonly AppKey[] {
  return kid === undefined ? keys : keys.filter((key) => (key.kid ?? kid) === kid);
}

type Verification =
  | { readonly claims: JWTPayload; readonly keyId: string; readonly error?: never }
  | { readonly claims?: never; readonly keyId?: never; readonly error: unknown };

/**
 * Tries the keys one after the other. During a rotation's grace period, they include the old key.
 */
async function verifyWithAny(
  token: string,
  algorithm: JwtAlgorithm,
  keys: readonly AppKey[],
): Promise<Verification> {
  let failure: unknown;
  for (const { id, key } of keys) {
    try {
      const { payload } = await jwtVerify(token, key, {
        algorithms: [algorithm],
        requiredClaims: ['exp'],
        clockTolerance: clockToleranceS,
      });
      return { claims: payload, keyId: id };
    } catch (error) {
      failure = error;
      if (!(error instanceof errors.JWSSignatureVerificationFailed)) break;
    }
  }
  return { error: failure };
}

/**
 * Makes a random key for each algorithm. If a token names an unknown app or key, we check the token
 * against one of these keys, so the response time doesn't reveal which app ids exist.
 */
function makeDecoyKeys(): Readonly<Record<JwtAlgorithm, KeyObject>> {
  const secret = createSecretKey(randomBytes(64));
  // Any odd 2048-bit random number will do, because nothing checks that the modulus is a product of
  // two primes.
  const modulus = randomBytes(256);
  modulus[0] = 0x80 | (modulus[0] ?? 0);
  modulus[255] = 0x01 | (modulus[255] ?? 0);
  const rsa = { kty: 'RSA', n: modulus.toString('base64url'), e: 'AQAB' };
  return {
    ...{ HS256: secret, HS384: secret, HS512: secret },
    RS256: createPublicKey({ key: rsa, format: 'jwk' }),
    ES256: generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey,
    EdDSA: generateKeyPairSync('ed25519').publicKey,
  };
}
