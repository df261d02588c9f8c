// Authenticates clients. The `auth` header contains a registered app's JWT, signed with one of the
// app's live keys and the algorithm that the app registered. The `x-api-key` header contains an API
// key. If an app isn't allowed to use a bot, the API returns the same 404 as if the bot didn't
// exist.

import type { Logger } from '../lib/logger.ts';
import type { App, AppDirectory, Scope } from '../store/apps/app-directory.ts';
import type { Bot } from '../store/apps/bot-directory.ts';
import { ProblemError } from './problem.ts';
import { wrongClaim } from './token-claims.ts';
import { createTokenVerifier } from './token-signature.ts';

type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

export type Authenticated = {
  readonly app: App;
  /** Id (`jwtKeyId`) of the app's key that verified the token. Undefined for an API key. */
  readonly keyId?: string;
};

/** One function per scheme, which finds the app from the credentials in the request's headers. */
export type Authenticator = Readonly<
  Record<'jwt' | 'apiKey', (headers: Headers, method?: string) => Promise<Authenticated>>
>;

export type AuthenticatorOptions = {
  /** Accepted values of the `aud` claim. */
  readonly audiences: readonly string[];
  readonly logger: Logger;
};

export function createAuthenticator(
  apps: AppDirectory,
  { audiences, logger }: AuthenticatorOptions,
): Authenticator {
  const verify = createTokenVerifier(apps);
  const warnIfUncapped = createUncappedWarning(logger);

  return {
    async jwt({ auth }) {
      const token = await verify(tokenFrom(auth));
      if (token.kind === 'unverified') throw unauthorized(unverified, token.cause);
      if (token.kind === 'wrong-claim') throw unauthorized(token.message, token.cause);
      const { app, claims, keyId } = token;
      const wrong = wrongClaim(claims, {
        audiences,
        maxTtlS: app.tokenMaxTtlS,
        nowS: Date.now() / 1_000,
      });
      if (wrong !== undefined) throw unauthorized(wrong);
      warnIfUncapped(app);
      return { app, keyId };
    },
    async apiKey({ 'x-api-key': header }) {
      const key = typeof header === 'string' ? header.trim() : '';
      if (key === '') throw noApiKey('Send an API key in the `x-api-key` header.');
      const app = await apps.findByApiKey(key);
      if (app === undefined) throw noApiKey('The API key does not belong to a registered app.');
      return { app };
    },
  };
}

/**
 * Returns the bot that `name` identifies. If the bot isn't registered, it belongs to the account of
 * the app that names it.
 *
 * @throws ProblemError `not-found` if the app may not use the bot
 */
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

/**
 * A missing token, an unknown app, the wrong algorithm and a wrong signature all get the same text,
 * so a wrong guess doesn't reveal anything.
 */
const unverified =
  "Send a JWT in the `auth` header, with the `appId` of a registered app, signed with that app's key and algorithm.";

function unauthorized(detail: string, cause?: unknown): ProblemError {
  return new ProblemError('unauthorized', detail, { cause });
}

function noApiKey(detail: string): ProblemError {
  return new ProblemError('unauthorized', detail, { challenge: 'ApiKey' });
}

function tokenFrom(header: string | readonly string[] | undefined): string {
  const text = typeof header === 'string' ? header.trim() : '';
  return text.replace(/^bearer +/i, '');
}

/**
 * Warns about apps whose tokens have no maximum lifetime, once per app and process. The set can't
 * grow without bound, because it only contains registered apps.
 */
function createUncappedWarning(logger: Logger): (app: App) => void {
  const warned = new Set<string>();
  return ({ appId, tokenMaxTtlS }) => {
    if (tokenMaxTtlS !== undefined || warned.has(appId)) return;
    warned.add(appId);
    logger.warn(
      { appId },
      'tokens of this app have no maximum lifetime; set one with: offhook apps limit <appId> --token-ttl 24h',
    );
  };
}
