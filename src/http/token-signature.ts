// Finds the app that signed a token. Until the signature is verified, all refusals are the same and
// take about the same time: a token of an unknown app, or with another algorithm than the app's, is
// verified with a decoy key.

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
import { claimRefusedBy, clockToleranceS } from './token-claims.ts';

const longestAppId = 128;
/**
 * Verified tokens that are cached: a dialer sends the same token with each request until it
 * expires. The cache takes 4 MB at most.
 */
const mostKept = 1_000;
/** Characters. Unusually long tokens are not cached. */
const longestKept = 2_000;

export type VerifiedToken =
  /** jose has also checked the claims `exp` and `nbf`, and that times are numbers. */
  | {
      readonly kind: 'verified';
      readonly app: App;
      readonly claims: JWTPayload;
      /** Id of the app's key that verified the signature. */
      readonly keyId: string;
    }
  | { readonly kind: 'wrong-claim'; readonly message: string; readonly cause: unknown }
  /** Nothing is known about the sender. */
  | { readonly kind: 'unverified'; readonly cause?: unknown };

export type TokenVerifier = (token: string) => Promise<VerifiedToken>;

export function createTokenVerifier(apps: AppDirectory): TokenVerifier {
  return remembering(apps, createVerifier(apps));
}

type Verified = Extract<VerifiedToken, { kind: 'verified' }>;

/**
 * Caches verified tokens. A token is verified again after its app was changed or revoked: the
 * directory then returns another object for the app, or undefined.
 */
function remembering(apps: AppDirectory, verify: TokenVerifier): TokenVerifier {
  const known = new LRUCache<string, Verified>({ max: mostKept });
  return async (text) => {
    const before = known.get(text);
    if (before !== undefined && !hasExpired(before.claims)) {
      if ((await apps.find(before.app.appId)) === before.app) return before;
      known.delete(text);
    }
    const token = await verify(text);
    if (token.kind === 'verified' && text.length <= longestKept) known.set(text, token);
    return token;
  };
}

function createVerifier(apps: AppDirectory): TokenVerifier {
  // The directory returns the same object for some seconds, so that keys are not imported for each
  // request.
  const imported = new WeakMap<App, readonly AppKey[]>();
  const keysOf = (app: App): readonly AppKey[] => {
    const keys = imported.get(app) ?? importKeys(app);
    imported.set(app, keys);
    return keys;
  };
  const decoyKeys = makeDecoyKeys();

  return async (token) => {
    const named = namedBy(token);
    if (named === undefined) return { kind: 'unverified' };
    const { appId, algorithm, kid } = named;
    const app = await apps.find(appId);
    const keys = app?.jwtAlgorithm === algorithm ? candidates(keysOf(app), kid) : [];
    if (app === undefined || keys.length === 0) {
      await verifyWithOneOf(token, algorithm, [{ id: '', key: decoyKeys[algorithm] }]);
      return { kind: 'unverified' };
    }
    const { claims, keyId, error } = await verifyWithOneOf(token, algorithm, keys);
    if (claims !== undefined) return { kind: 'verified', app, claims, keyId };
    const message = claimRefusedBy(error);
    return message === undefined
      ? { kind: 'unverified', cause: error }
      : { kind: 'wrong-claim', message, cause: error };
  };
}

/**
 * Compares whole seconds, as jose does. `nbf` need not be checked again: it was already in the
 * past.
 */
function hasExpired({ exp = 0 }: JWTPayload): boolean {
  return exp <= Math.floor(Date.now() / 1_000) - clockToleranceS;
}

type Named = {
  readonly appId: string;
  readonly algorithm: JwtAlgorithm;
  readonly kid: string | undefined;
};

/**
 * Reads the token before anything in it is trusted, only to find the app and key to verify it with.
 */
function namedBy(token: string): Named | undefined {
  if (!token.split('.').every(isCanonical)) return undefined;
  try {
    const { alg, kid } = decodeProtectedHeader(token) as { alg?: unknown; kid?: unknown };
    const algorithm = jwtAlgorithms.find((name) => name === alg);
    const appId = decodeJwt(token)['appId'];
    if (algorithm === undefined || typeof appId !== 'string') return undefined;
    // An id with a NUL would cause an error of the database instead of an unknown app.
    if (appId.length > longestAppId || !/^[\x21-\x7e]+$/.test(appId)) return undefined;
    return { appId, algorithm, kid: typeof kid === 'string' ? kid : undefined };
  } catch {
    return undefined;
  }
}

/**
 * RFC 7515 section 2 requires base64url without padding, and RFC 4648 section 3.5 requires the bits
 * beyond the last byte to be zero. Otherwise one token could be written in many ways and evade a
 * list of revoked tokens.
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

/**
 * Returns the keys that the `kid` of a token may mean. A key that was registered without a `kid`
 * matches every token.
 */
function candidates(keys: readonly AppKey[], kid: string | undefined): readonly AppKey[] {
  return kid === undefined ? keys : keys.filter((key) => (key.kid ?? kid) === kid);
}

type Verification =
  | { readonly claims: JWTPayload; readonly keyId: string; readonly error?: never }
  | { readonly claims?: never; readonly keyId?: never; readonly error: unknown };

/**
 * Tries the keys in turn. During the grace time after a rotation, the former key is one of them.
 */
async function verifyWithOneOf(
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
 * Makes a random key for each algorithm. A token of an unknown app or key is verified with one of
 * them, and refused. The time that the refusal takes then does not reveal which app ids exist.
 */
function makeDecoyKeys(): Readonly<Record<JwtAlgorithm, KeyObject>> {
  const secret = createSecretKey(randomBytes(64));
  // An odd random number of 2048 bits. Its factors are unknown. Nothing checks that they are two
  // primes.
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
