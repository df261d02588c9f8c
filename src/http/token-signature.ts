// Finds the app that signed a token. Until the signature is verified, every refusal is the same and takes about as long, because
// a token of an unknown app, or of another algorithm than the app's, is verified with a decoy key.

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
/** A dialer sends the same token with each request until it expires. Kept are 4 MB at most, and none that is unusually long. */
const mostKept = 1_000;
const longestKept = 2_000;

export type VerifiedToken =
  /** With what jose checks of claims: `exp` and `nbf`, and that times are numbers. */
  | {
      readonly kind: 'verified';
      readonly app: App;
      readonly claims: JWTPayload;
      /** The key of the app that verified the signature. */
      readonly keyId: string;
    }
  | { readonly kind: 'wrong-claim'; readonly message: string; readonly cause: unknown }
  /** Nothing is known of who sent it. */
  | { readonly kind: 'unverified'; readonly cause?: unknown };

export type TokenVerifier = (token: string) => Promise<VerifiedToken>;

export function createTokenVerifier(apps: AppDirectory): TokenVerifier {
  return remembering(apps, createVerifier(apps));
}

type Verified = Extract<VerifiedToken, { kind: 'verified' }>;

/** A token is verified anew after its app was changed or revoked: the directory then has another object for the app, or none. */
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
  // The directory gives the same object for some seconds, so that a key is not imported for each request.
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

/** As jose has it, in whole seconds. `nbf`, which lay in the past, still does. */
function hasExpired({ exp = 0 }: JWTPayload): boolean {
  return exp <= Math.floor(Date.now() / 1_000) - clockToleranceS;
}

type Named = {
  readonly appId: string;
  readonly algorithm: JwtAlgorithm;
  readonly kid: string | undefined;
};

/** Reads the token before anything in it is trusted, only to know whose key to verify it with. */
function namedBy(token: string): Named | undefined {
  if (!token.split('.').every(isCanonical)) return undefined;
  try {
    const { alg, kid } = decodeProtectedHeader(token) as { alg?: unknown; kid?: unknown };
    const algorithm = jwtAlgorithms.find((name) => name === alg);
    const appId = decodeJwt(token)['appId'];
    if (algorithm === undefined || typeof appId !== 'string') return undefined;
    // A NUL would be an error of the database, not an unknown app.
    if (appId.length > longestAppId || !/^[\x21-\x7e]+$/.test(appId)) return undefined;
    return { appId, algorithm, kid: typeof kid === 'string' ? kid : undefined };
  } catch {
    return undefined;
  }
}

/**
 * RFC 7515 section 2 has base64url without padding, and RFC 4648 section 3.5 wants the bits beyond the last byte to be zero.
 * Otherwise one token could be written in many ways, and a list of revoked ones evaded.
 */
function isCanonical(part: string): boolean {
  return Buffer.from(part, 'base64url').toString('base64url') === part;
}

/** `id`: of the secret, or of the document that the key stands in. */
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

/** A key that was registered without a name may be the one that any token means. */
function candidates(keys: readonly AppKey[], kid: string | undefined): readonly AppKey[] {
  return kid === undefined ? keys : keys.filter((key) => (key.kid ?? kid) === kid);
}

type Verification =
  | { readonly claims: JWTPayload; readonly keyId: string; readonly error?: never }
  | { readonly claims?: never; readonly keyId?: never; readonly error: unknown };

/** In the grace time after a rotation, the former key too. */
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
 * A random key for each algorithm. A token whose app or key is unknown is verified with one of them, and refused: the time of
 * the refusal then does not reveal which app ids exist.
 */
function makeDecoyKeys(): Readonly<Record<JwtAlgorithm, KeyObject>> {
  const secret = createSecretKey(randomBytes(64));
  // An odd number of 2048 bits: its factors are unknown, and that they are two primes is not looked at.
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
