// Implements `offhook records`, which exports the records of calls and checks exported files.

import { createReadStream } from 'node:fs';
import type { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type AppOptions, openAdminAccess, withGateway } from '../app-session.ts';
import type { CliContext } from '../cli-context.ts';
import { CliError } from '../cli-error.ts';
import { ExportCheck } from './export-check.ts';

export type ExportOptions = Pick<AppOptions, 'app'> & {
  readonly account?: string;
  readonly from?: string;
  readonly to?: string;
  readonly campaign?: string;
  readonly format: string;
};

/** Writes the export to `output` as it arrives, and fails if the last line is missing or wrong. */
export async function exportRecords(
  context: CliContext,
  { app, account, ...query }: ExportOptions,
  output: Writable = process.stdout,
): Promise<void> {
  const appId = account === undefined ? app : await appOfAccount(context, account);
  const actsAs = appId === undefined ? {} : { app: appId };
  await withGateway(context, actsAs, async ({ records }) => {
    const check = new ExportCheck();
    const parts = await records(query, context.interrupted);
    try {
      await pipeline(checked(parts, check), output, { end: false });
    } catch (error) {
      throw new CliError('The export is incomplete: the connection broke.', { cause: error });
    }
    const result = check.finish();
    if (!result.ok) throw new CliError(`The export cannot be used: ${result.problem}.`);
    context.note(`${result.records} records, sha256 ${result.sha256}`);
  });
}

async function* checked(
  parts: AsyncIterable<Uint8Array>,
  check: ExportCheck,
): AsyncGenerator<Uint8Array> {
  for await (const part of parts) {
    check.add(part);
    yield part;
  }
}

/** Returns an app of the account that may export the records of all its bots. */
async function appOfAccount(context: CliContext, accountId: string): Promise<string> {
  await using access = await openAdminAccess(context);
  const { apps } = await access.run('apps.list', {});
  const found = apps.find(
    (app) =>
      app.accountId === accountId &&
      app.revokedAt === undefined &&
      app.bots.includes('*') &&
      app.scopes.includes('Calling Rules'),
  );
  if (found !== undefined) return found.appId;
  throw new CliError(
    `No app of the account ${accountId} has the scope "Calling Rules" and all bots. Create one with: offhook apps create --name NAME --account ${accountId} --scopes "Calling Rules"`,
  );
}

/** Checks a file that was exported before. */
export async function verifyRecords(context: CliContext, path: string): Promise<void> {
  const check = new ExportCheck();
  try {
    for await (const part of createReadStream(path)) check.add(part as Buffer);
  } catch (error) {
    throw new CliError(`${path} cannot be read`, { cause: error });
  }
  const result = check.finish();
  if (!result.ok) throw new CliError(`${path} cannot be relied on: ${result.problem}.`);
  context.print(`${path} is whole: ${result.records} records, sha256 ${result.sha256}`);
}
