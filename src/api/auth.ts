// Who is calling: the header `auth` holds a JWT of a registered app, signed with the one algorithm and secret that the
// app registered. A bot that the app does not own is as if it did not exist.

import { createSecretKey, type KeyObject } from 'node:crypto';
import { decodeJwt, decodeProtectedHeader, errors, type JWTPayload, jwtVerify } from 'jose';
import type { App, AppDirectory, Scope } from '../store/app-directory.ts';
import type { Bot } from '../store/bot-directory.ts';
import { ProblemError } from './problem.ts';

/** Clocks of dialers and gateways differ; more than half a minute is a fault that someone should see. */
const clockToleranceS = 30;
const longestAppId = 128;

export type Authenticator = (header: string | readonly string[] | undefined) => Promise<App>;

/** @param audiences what `aud` may say, where a token has one (RFC 7519 section 4.1.3). */
export function createAuthenticator(
  apps: AppDirectory,
  audiences: readonly string[],
): Authenticator {
  // The directory gives the same object for some seconds, so that a key is not imported for each request.
  const keys = new WeakMap<App, KeyObject>();
  const keyOf = (app: App): KeyObject => {
    const key = keys.get(app) ?? createSecretKey(app.jwtSecret, 'utf8');
    keys.set(app, key);
    return key;
  };

  return async (header) => {
    const token = tokenFrom(header);
    const app = await apps.find(claimedApp(token));
    if (app === undefined) throw unauthorized(badSignature);
    const claims = await verify(token, app, keyOf(app));
    if (claims.aud !== undefined && ![claims.aud].flat().some((aud) => audiences.includes(aud))) {
      throw unauthorized('The token is meant for another audience.');
    }
    return app;
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

function tokenFrom(header: string | readonly string[] | undefined): string {
  const text = typeof header === 'string' ? header.trim() : '';
  if (text === '') throw unauthorized('Send a JWT in the header `auth`.');
  return text.replace(/^bearer +/i, '');
}

/** Reads the token before anything in it is trusted, only to know whose secret to verify it with. */
function claimedApp(token: string): string {
  let algorithm: string | undefined;
  let appId: unknown;
  try {
    algorithm = decodeProtectedHeader(token).alg;
    appId = decodeJwt(token)['appId'];
  } catch (error) {
    throw unauthorized('The header `auth` holds no JWT.', error);
  }
  if (algorithm === undefined || algorithm.toLowerCase() === 'none') {
    throw unauthorized('The token is not signed.');
  }
  if (typeof appId !== 'string' || appId === '' || appId.length > longestAppId) {
    throw unauthorized('The token has no claim `appId`.');
  }
  // A NUL would be an error of the database, not an unknown app.
  if (!/^[\x21-\x7e]+$/.test(appId)) throw unauthorized(badSignature);
  return appId;
}

async function verify(token: string, app: App, key: KeyObject): Promise<JWTPayload> {
  try {
    const verified = await jwtVerify(token, key, {
      algorithms: [app.jwtAlgorithm],
      requiredClaims: ['appId', 'exp'],
      clockTolerance: clockToleranceS,
    });
    return verified.payload;
  } catch (error) {
    throw unauthorized(reasonOf(error), error);
  }
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
