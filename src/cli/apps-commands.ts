// Implements `offhook token` and `offhook apps`.

import { readFile } from 'node:fs/promises';
import type { AppLimits } from '../calls/target/app-limits.ts';
import type { NumberReading } from '../calls/target/number-reading.ts';
import { maxIssuedTokenTtlS } from '../http/issue-token.ts';
import { parseDurationS } from '../lib/durations.ts';
import {
  maxGraceS,
  maxTokenMaxTtlS,
  minTokenMaxTtlS,
  type RotatableCredential,
} from '../store/apps/app-credentials.ts';
import { type JwtAlgorithm, type Scope, scopes } from '../store/apps/app-directory.ts';
import { updateDevAppFile } from '../store/apps/dev-app-file.ts';
import { openAdminAccess, openTokens } from './app-session.ts';
import { noteBotCredentials } from './bot-credentials.ts';
import { type CliContext, readDevApp } from './cli-context.ts';
import { CliError } from './cli-error.ts';
import { findAppId } from './named-app.ts';

/** The default lifetime of tokens from `offhook token`. */
const usualTtlS = 3_600;

export async function printToken(
  context: CliContext,
  options: { readonly app?: string; readonly ttl: string },
): Promise<void> {
  const ttlS = parseDurationS(options.ttl);
  if (ttlS === undefined || ttlS < 1 || ttlS > maxIssuedTokenTtlS) {
    throw new CliError('--ttl must be e.g. 90s, 15m, 1h or 7d, at most 31d');
  }
  // The dev app's secret is in a file, but the maximum token lifetime is in the database, which we
  // only need if the token's lifetime exceeds the default.
  const isUsual = options.app !== undefined || ttlS <= usualTtlS;
  const appId = isUsual ? options.app : (await readDevApp(context)).appId;
  await using app = await openTokens(context, appId);
  context.print(await app.tokens(ttlS));
}

/**
 * The file containing the public keys that verify the app's tokens. Both options accept the same
 * formats.
 */
export type KeyOptions = { readonly publicKey?: string; readonly jwks?: string };

export type CreateAppOptions = KeyOptions & {
  readonly name: string;
  readonly account: string;
  readonly bots: string;
  readonly scopes?: string;
  readonly jwtAlgorithm: JwtAlgorithm;
} & NumberReading;

export async function createApp(context: CliContext, options: CreateAppOptions): Promise<void> {
  const wanted = options.scopes === undefined ? ['Dialout'] : splitList(options.scopes);
  const known = wanted.filter((scope): scope is Scope => scopes.some((name) => name === scope));
  const unknown = wanted.filter((scope) => !known.some((name) => name === scope));
  if (unknown.length > 0) {
    throw new CliError(
      `There is no scope ${unknown.join(', ')}. The scopes are:\n  ${scopes.join('\n  ')}`,
    );
  }
  const keys = await readPublicKeys(options);
  await using access = await openAdminAccess(context);
  const credentials = await access.run('apps.create', {
    name: options.name,
    accountId: options.account,
    bots: splitList(options.bots),
    scopes: known,
    jwtAlgorithm: options.jwtAlgorithm,
    ...keys,
    ...toReading(options),
  });
  context.note('These credentials are shown once; the API key is stored only as a hash.');
  noteBotCredentials(context, credentials.appId);
  context.print(JSON.stringify(credentials, undefined, 2));
}

export async function listApps(
  context: CliContext,
  options: { readonly json?: boolean },
): Promise<void> {
  await using access = await openAdminAccess(context);
  for (const app of (await access.run('apps.list', {})).apps) {
    const { appId, accountId, name, bots, scopes: granted, jwtAlgorithm, revokedAt } = app;
    const uncapped = app.tokenMaxTtlS === undefined ? '  tokens without a cap' : '';
    const revoked = revokedAt === undefined ? '' : '  revoked';
    const limited = app.limits === undefined ? '' : `  ${describeLimits(app.limits)}`;
    const read = describeReading(app);
    context.print(
      options.json === true
        ? JSON.stringify(app)
        : `${appId}  ${name}  account ${accountId}  bots ${bots.join(',')}  ${jwtAlgorithm}  scopes ${granted.join(', ')}${limited}${read}${uncapped}${revoked}`,
    );
  }
}

function describeReading({ defaultCountry, bareNumbers }: NumberReading): string {
  if (defaultCountry !== undefined)
    return `  numbers without + are national numbers of ${defaultCountry}`;
  return bareNumbers === undefined ? '' : '  numbers without + are international';
}

function describeLimits(limits: AppLimits): string {
  const plus = (digits: readonly string[]) => digits.map((prefix) => `+${prefix}`).join(',');
  const { allowedPrefixes, deniedPrefixes, callsAtOnce, callsPerDay } = limits;
  return [
    allowedPrefixes && `only ${plus(allowedPrefixes)}`,
    deniedPrefixes && `not ${plus(deniedPrefixes)}`,
    callsAtOnce === undefined ? undefined : `${callsAtOnce} calls at once`,
    callsPerDay === undefined ? undefined : `${callsPerDay} calls a day`,
  ]
    .filter((part) => part !== undefined)
    .join('  ');
}

export type RotateOptions = KeyOptions & { readonly grace: string; readonly force?: boolean };

export async function rotateApp(
  context: CliContext,
  named: string,
  what: RotatableCredential,
  options: RotateOptions,
): Promise<void> {
  const graceS = parseDurationS(options.grace);
  if (graceS === undefined || graceS > maxGraceS) {
    throw new CliError('--grace must be e.g. 0s, 90m, 24h or 7d, at most 31d');
  }
  const keys = await readPublicKeys(options);
  await using access = await openAdminAccess(context);
  const appId = await findAppId(access, named);
  const rotated = await access.run('apps.rotate', {
    ...{ appId, what, graceS, ...keys },
    force: options.force === true,
  });
  const { databaseUrl, dataDir } = context.config;
  if (databaseUrl === undefined) await updateDevAppFile(dataDir, rotated);
  context.note(
    graceS === 0
      ? 'The old credential is no longer valid.'
      : `The old credential stays valid until ${rotated.previousUntil}.`,
  );
  if (what === 'stream') noteBotCredentials(context, appId);
  context.print(JSON.stringify(rotated, undefined, 2));
}

export type LimitOptions = {
  readonly prefixes?: string;
  readonly denyPrefixes?: string;
  readonly callsAtOnce?: string;
  readonly callsADay?: string;
  readonly tokenTtl?: string;
  readonly defaultCountry?: string;
  readonly bareNumbers?: 'international' | 'none';
};

/** Changes the limits in `options`. `none` removes a limit. Omitted limits don't change. */
export async function limitApp(
  context: CliContext,
  named: string,
  { prefixes, denyPrefixes, callsAtOnce, callsADay, tokenTtl, ...reading }: LimitOptions,
): Promise<void> {
  const change = {
    ...(prefixes === undefined ? {} : { allowedPrefixes: readPrefixes('--prefixes', prefixes) }),
    ...(denyPrefixes === undefined
      ? {}
      : { deniedPrefixes: readPrefixes('--deny-prefixes', denyPrefixes) }),
    ...(callsAtOnce === undefined
      ? {}
      : { callsAtOnce: readCount('--calls-at-once', callsAtOnce) }),
    ...(callsADay === undefined ? {} : { callsPerDay: readCount('--calls-a-day', callsADay) }),
    ...(tokenTtl === undefined ? {} : { tokenMaxTtlS: readTokenTtl(tokenTtl) }),
    ...readingChange(reading),
  };
  await using access = await openAdminAccess(context);
  const appId = await findAppId(access, named);
  const limited = await access.run('apps.limit', { appId, ...change });
  context.note('Every gateway applies the limits within 5 seconds.');
  context.print(JSON.stringify(limited));
}

function toReading({ defaultCountry, bareNumbers }: NumberReading): NumberReading {
  return {
    // Country codes are upper case, but the option accepts lower case as well.
    ...(defaultCountry === undefined ? {} : { defaultCountry: defaultCountry.toUpperCase() }),
    ...(bareNumbers === undefined ? {} : { bareNumbers }),
  };
}

function readingChange({
  defaultCountry,
  bareNumbers,
}: Pick<LimitOptions, 'defaultCountry' | 'bareNumbers'>) {
  const named = defaultCountry === 'none' ? null : defaultCountry?.toUpperCase();
  const read = bareNumbers === 'none' ? null : bareNumbers;
  return {
    ...(named === undefined ? {} : { defaultCountry: named }),
    ...(read === undefined ? {} : { bareNumbers: read }),
  };
}

function readPrefixes(option: string, text: string): string[] | null {
  if (text === 'none') return null;
  const digits = splitList(text).map((prefix) => prefix.replace(/^\+/, ''));
  if (digits.length === 0 || !digits.every((prefix) => /^[1-9][0-9]{0,14}$/.test(prefix))) {
    throw new CliError(`${option} must be prefixes with their country code, e.g. +1,+49; or none`);
  }
  return digits;
}

function readCount(option: string, text: string): number | null {
  if (text === 'none') return null;
  if (!/^[0-9]{1,9}$/.test(text)) throw new CliError(`${option} must be a number, or none`);
  return Number(text);
}

function readTokenTtl(text: string): number | null {
  if (text === 'none') return null;
  const ttlS = parseDurationS(text) ?? 0;
  if (ttlS < minTokenMaxTtlS || ttlS > maxTokenMaxTtlS) {
    throw new CliError('--token-ttl must be e.g. 15m, 24h or 7d, at least 60s; or none');
  }
  return ttlS;
}

export async function revokeApp(context: CliContext, named: string): Promise<void> {
  await using access = await openAdminAccess(context);
  const appId = await findAppId(access, named);
  await access.run('apps.revoke', { appId });
  context.note(`Every gateway refuses ${appId} within 5 seconds.`);
}

async function readPublicKeys({
  publicKey,
  jwks,
}: KeyOptions): Promise<{ readonly publicKeys?: string }> {
  if (publicKey !== undefined && jwks !== undefined) {
    throw new CliError('Give --public-key or --jwks, not both.');
  }
  const path = publicKey ?? jwks;
  if (path === undefined) return {};
  try {
    return { publicKeys: await readFile(path, 'utf8') };
  } catch (error) {
    throw new CliError(`${path} cannot be read`, { cause: error });
  }
}

function splitList(text: string): string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}
