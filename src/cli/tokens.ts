// Whose tokens a command uses: the dev app's, or those of the app that it names.

import type { AdminAccess } from './admin-access.ts';
import { type CliContext, type DevApp, readDevApp } from './cli-context.ts';
import { type TokenSource, tokensOf } from './gateway-client.ts';
import { appIdNamed } from './named-app.ts';

export type AppTokens = AsyncDisposable & {
  readonly tokens: TokenSource;
  /** Only where no app was named. */
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
      appId ??= appIdNamed(access, named);
      return (await access.run('apps.token', { appId: await appId, ttlS })).token;
    },
    [Symbol.asyncDispose]: () => access[Symbol.asyncDispose](),
  };
}

/** The database's code is loaded only where it is needed: a token of the dev app should be there at once. */
export async function openAdminAccess(context: CliContext): Promise<AdminAccess> {
  const access = await import('./admin-access.ts');
  return await access.openAdminAccess(context);
}
