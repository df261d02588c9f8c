// Implements `offhook tables`, with which the gateway's operator defines data tables from files.

import { readFile } from 'node:fs/promises';
import type { AdminInput } from '../api/admin/admin-operations.ts';
import { devAccountId } from '../store/apps/dev-app-file.ts';
import { openAdminAccess } from './admin-access.ts';
import type { CliContext } from './cli-context.ts';
import { CliError } from './cli-error.ts';

export type CreateTableOptions = { readonly account?: string; readonly replace?: boolean };

export async function createTable(
  context: CliContext,
  file: string,
  { account, replace = false }: CreateTableOptions,
): Promise<void> {
  const accountId =
    account ?? (context.config.databaseUrl === undefined ? devAccountId : undefined);
  if (accountId === undefined)
    throw new CliError('Name the account that owns the table: --account ID');
  const definition = await readDefinition(file);
  await using access = await openAdminAccess(context);
  const table = await access.run('tables.create', { ...definition, accountId, replace });
  context.note(`Add rows with: POST /api/public/tables/${table.name}`);
  context.print(JSON.stringify(table));
}

export async function listTables(context: CliContext): Promise<void> {
  await using access = await openAdminAccess(context);
  const { tables } = await access.run('tables.list', {});
  for (const table of tables) context.print(JSON.stringify(table));
}

/**
 * Reads the file without validating it. The store validates the definition and reports any errors.
 */
async function readDefinition(file: string): Promise<AdminInput<'tables.create'>> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as AdminInput<'tables.create'>;
  } catch (error) {
    const problem = error instanceof SyntaxError ? 'is not JSON' : 'cannot be read';
    throw new CliError(`${file} ${problem}`, { cause: error });
  }
}
