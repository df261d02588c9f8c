// Who is calling. The header `auth` holds a JWT of a registered app, signed by the one algorithm that the app registered,
// with one of its live keys; the header `x-api-key` holds an API key. A bot that the app does not own is as if it did not exist.

import { createSecretKey } from 'node:crypto';
import { decodeJwt, decodeProtectedHeader, errors, type JWTPayload, jwtVerify } from 'jose';
import type { App, AppDirectory, Scope } from '../store/app-directory.ts';
import type { Bot } from '../store/bot-directory.ts';
import {
  isPublicKeyAlgorithm,
  readVerificationKeys,
  type VerificationKey,
} from '../store/jwt-keys.ts';
import { ProblemError } from './problem.ts';

/** Clocks of dialers and gateways differ; more than half a minute is a fault that someone should see. */
const clockToleranceS = 30;
const longestAppId = 128;

type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

/** By scheme: the app that a request's headers speak for. */
export type Authenticator = Readonly<Record<'jwt' | 'apiKey', (headers: Headers) => Promise<App>>>;

/** @param audiences what `aud` may say, where a token has one (RFC 7519 section 4.1.3). */
export function createAuthenticator(
  apps: AppDirectory,
  audiences: readonly string[],
): Authenticator {
  // The directory gives the same object for some seconds, so that a key is not imported for each request.
  const imported = new WeakMap<App, readonly VerificationKey[]>();
  const keysOf = (app: App): readonly VerificationKey[] => {
    const keys = imported.get(app) ?? importKeys(app);
    imported.set(app, keys);
    return keys;
  };

  return {
    async jwt({ auth }) {
      const token = tokenFrom(auth);
      const { appId, kid } = claimedBy(token);
      const app = await apps.find(appId);
      if (app === undefined) throw unauthorized(badSignature);
      const claims = await verifyWithOneOf(token, app, candidates(keysOf(app), kid));
      if (claims.aud !== undefined && ![claims.aud].flat().some((aud) => audiences.includes(aud))) {
        throw unauthorized('The token is meant for another audience.');
      }
      return app;
    },
    async apiKey({ 'x-api-key': header }) {
      const key = typeof header === 'string' ? header.trim() : '';
      if (key === '') throw noApiKey('Send an API key in the header `x-api-key`.');
      const app = await apps.findByApiKey(key);
      if (app === undefined) throw noApiKey('The API key is not one of a registered app.');
      return app;
    },
  };
}

/** 404 for a bot of somebody else. A bot that nobody registered is whoever's app names it. */
export function authorizeBot(app: App, name: string, bot: Bot | undefined): Bot {
  const names = [name, bot?.botId, bot?.streamId];
  const isGranted = app.bots.some((granted) => granted === '*' || names.includes(granted));
  if (!isGranted || (bot !== undefined && bot.accountId !== app.accountId)) {
    throw new ProblemError('not-found', 'There is no such bot.');
  }
  return bot ?? { botId: name, accountId: app.accountId };
}

export function authorizeScope(app: App, scope: Scope): void {
  if (!app.scopes.includes(scope)) {
    throw new ProblemError('forbidden', `The app needs the scope "${scope}".`);
  }
}

/** One text for an unknown app and a wrong signature: guesses learn nothing. */
const badSignature = "The token's signature does not fit the app that it names.";

function unauthorized(detail: string, cause?: unknown): ProblemError {
  return new ProblemError('unauthorized', detail, { cause });
}

function noApiKey(detail: string): ProblemError {
  return new ProblemError('unauthorized', detail, { challenge: 'ApiKey' });
}

function tokenFrom(header: string | readonly string[] | undefined): string {
  const text = typeof header === 'string' ? header.trim() : '';
  if (text === '') throw unauthorized('Send a JWT in the header `auth`.');
  return text.replace(/^bearer +/i, '');
}

/** Reads the token before anything in it is trusted, only to know whose key to verify it with. */
function claimedBy(token: string): { appId: string; kid: string | undefined } {
  let algorithm: string | undefined;
  let kid: unknown;
  let appId: unknown;
  try {
    ({ alg: algorithm, kid } = decodeProtectedHeader(token));
    appId = decodeJwt(token)['appId'];
  } catch (error) {
    throw unauthorized('The header `auth` holds no JWT.', error);
  }
  if (typeof algorithm !== 'string' || algorithm.toLowerCase() === 'none') {
    throw unauthorized('The token is not signed.');
  }
  if (typeof appId !== 'string' || appId === '' || appId.length > longestAppId) {
    throw unauthorized('The token has no claim `appId`.');
  }
  // A NUL would be an error of the database, not an unknown app.
  if (!/^[\x21-\x7e]+$/.test(appId)) throw unauthorized(badSignature);
  return { appId, kid: typeof kid === 'string' ? kid : undefined };
}

function importKeys({ jwtAlgorithm, jwtKeys }: App): readonly VerificationKey[] {
  return isPublicKeyAlgorithm(jwtAlgorithm)
    ? jwtKeys.flatMap(readVerificationKeys)
    : jwtKeys.map((secret) => ({ key: createSecretKey(secret, 'utf8') }));
}

/** A key that was registered without a name may be the one that any token means. */
function candidates(
  keys: readonly VerificationKey[],
  kid: string | undefined,
): readonly VerificationKey[] {
  return kid === undefined ? keys : keys.filter((key) => (key.kid ?? kid) === kid);
}

/** In the grace time after a rotation, the former key too. */
async function verifyWithOneOf(
  token: string,
  app: App,
  keys: readonly VerificationKey[],
): Promise<JWTPayload> {
  let failure: unknown;
  for (const { key } of keys) {
    try {
      const verified = await jwtVerify(token, key, {
        algorithms: [app.jwtAlgorithm],
        requiredClaims: ['appId', 'exp'],
        clockTolerance: clockToleranceS,
      });
      return verified.payload;
    } catch (error) {
      failure = error;
      if (!(error instanceof errors.JWSSignatureVerificationFailed)) break;
    }
  }
  throw unauthorized(reasonOf(failure), failure);
}

function reasonOf(error: unknown): string {
  if (error instanceof errors.JWTExpired) return 'The token has expired.';
  if (error instanceof errors.JWTClaimValidationFailed) {
    if (error.reason === 'missing') return `The token has no claim \`${error.claim}\`.`;
    if (error.claim === 'nbf') return 'The token is not valid yet.';
    return `The token's claim \`${error.claim}\` is not valid.`;
  }
  if (error instanceof errors.JOSEAlgNotAllowed) {
    return 'The token is signed with another algorithm than the app registered.';
  }
  return badSignature;
}
