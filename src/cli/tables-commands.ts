// offhook tables: data tables are defined by who runs the service, from a file.

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
  if (accountId === undefined) throw new CliError('Say whose table it is: --account ID');
  const definition = await readDefinition(file);
  await using access = await openAdminAccess(context);
  const table = await access.run('tables.create', { ...definition, accountId, replace });
  context.note(`Rows go to: POST /api/public/tables/${table.name}`);
  context.print(JSON.stringify(table));
}

export async function listTables(context: CliContext): Promise<void> {
  await using access = await openAdminAccess(context);
  const { tables } = await access.run('tables.list', {});
  for (const table of tables) context.print(JSON.stringify(table));
}

/** As it was written: what is wrong with it is told by the store. */
async function readDefinition(file: string): Promise<AdminInput<'tables.create'>> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as AdminInput<'tables.create'>;
  } catch (error) {
    const isJson = !(error instanceof SyntaxError);
    throw new CliError(`${file} ${isJson ? 'cannot be read' : 'is not JSON'}`, { cause: error });
  }
}
