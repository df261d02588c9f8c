// offhook token, offhook apps.

import { longestTokenTtlS } from '../api/issue-token.ts';
import { type Scope, scopes } from '../store/app-directory.ts';
import type { CliContext } from './cli-context.ts';
import { CliError } from './cli-error.ts';
import { parseDurationS } from './durations.ts';
import { openAppAccess, openTokens } from './tokens.ts';

export async function printToken(
  context: CliContext,
  options: { readonly app?: string; readonly ttl: string },
): Promise<void> {
  const ttlS = parseDurationS(options.ttl);
  if (ttlS === undefined || ttlS < 1 || ttlS > longestTokenTtlS) {
    throw new CliError('--ttl must be e.g. 90s, 15m, 1h or 7d, at most 31d');
  }
  await using app = await openTokens(context, options.app);
  context.print(await app.tokens(ttlS));
}

export type CreateAppOptions = {
  readonly name: string;
  readonly account: string;
  readonly bots: string;
  readonly scopes?: string;
};

export async function createApp(context: CliContext, options: CreateAppOptions): Promise<void> {
  const wanted = options.scopes === undefined ? ['Dialout'] : splitList(options.scopes);
  const known = wanted.filter((scope): scope is Scope => scopes.some((name) => name === scope));
  const unknown = wanted.filter((scope) => !known.some((name) => name === scope));
  if (unknown.length > 0) {
    throw new CliError(
      `There is no scope ${unknown.join(', ')}. Scopes are:\n  ${scopes.join('\n  ')}`,
    );
  }
  await using access = await openAppAccess(context);
  const credentials = await access.create({
    name: options.name,
    accountId: options.account,
    bots: splitList(options.bots),
    scopes: known,
  });
  context.note('These credentials are shown once; the API key is stored only as a hash.');
  context.print(JSON.stringify(credentials, undefined, 2));
}

export async function listApps(
  context: CliContext,
  options: { readonly json?: boolean },
): Promise<void> {
  await using access = await openAppAccess(context);
  for (const app of await access.list()) {
    const { appId, accountId, name, bots, scopes: granted, revokedAt } = app;
    const revoked = revokedAt === undefined ? '' : '  revoked';
    context.print(
      options.json === true
        ? JSON.stringify(app)
        : `${appId}  ${name}  account ${accountId}  bots ${bots.join(',')}  scopes ${granted.join(', ')}${revoked}`,
    );
  }
}

function splitList(text: string): string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}
