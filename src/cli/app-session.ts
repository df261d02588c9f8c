// Lets a command act as an app. To do so, it signs the app's tokens and calls the local gateway's
// API.

import type { AdminAccess } from './admin-access.ts';
import { type CliContext, type DevApp, readDevApp, requireGateway } from './cli-context.ts';
import {
  createGatewayClient,
  type GatewayClient,
  type TokenSource,
  tokensOf,
} from './gateway-client.ts';
import { findAppId } from './named-app.ts';

/** Tokens for the app that the command names. Without a name, they are for the dev app. */
export type AppTokens = AsyncDisposable & {
  readonly tokens: TokenSource;
  /** Undefined if the command names an app. */
  readonly devApp?: DevApp;
};

export async function openTokens(
  context: CliContext,
  named: string | undefined,
): Promise<AppTokens> {
  if (named === undefined) {
    const devApp = await readDevApp(context);
    return {
      devApp,
      tokens: tokensOf(devApp),
      [Symbol.asyncDispose]: () => Promise.resolve(),
    };
  }
  const access = await openAdminAccess(context);
  let appId: Promise<string> | undefined;
  return {
    tokens: async (ttlS) => {
      appId ??= findAppId(access, named);
      return (await access.run('apps.token', { appId: await appId, ttlS })).token;
    },
    [Symbol.asyncDispose]: () => access[Symbol.asyncDispose](),
  };
}

/**
 * Opens access to apps, bots, data tables and nodes. We don't load the database code until now,
 * because a dev app token doesn't need it.
 */
export async function openAdminAccess(context: CliContext): Promise<AdminAccess> {
  const access = await import('./admin-access.ts');
  return await access.openAdminAccess(context);
}

/** `app` defaults to the dev app, `bot` to every bot of the app. */
export type AppOptions = { readonly app?: string; readonly bot?: string };

export async function withGateway(
  context: CliContext,
  { app: appId }: AppOptions,
  work: (client: GatewayClient) => Promise<void>,
): Promise<void> {
  await using app = await openTokens(context, appId);
  const { httpUrl } = await requireGateway(context);
  await work(createGatewayClient(httpUrl, app.tokens));
}
