// Creates the schema in an empty database, and rejects a database that was created by a different
// version, or by another build of this version with other tables. Nodes that start at the same time
// do this one after the other, each in one transaction. The SQL functions that claim calls are
// versioned separately from the tables: if a function's text has changed, the next start replaces
// the function.

import { createHash } from 'node:crypto';
import type { Pool, PoolClient } from 'pg';
import type { Logger } from '../lib/logger.ts';
import { restPartitions } from './days.ts';
import { apps } from './schema/apps.ts';
import { calls } from './schema/calls.ts';
import { companion } from './schema/companion.ts';
import { consoleTables } from './schema/console.ts';
import { lockCalls, lockCampaigns } from './schema/lock-calls.ts';
import { messages } from './schema/messages.ts';
import { nodes } from './schema/nodes.ts';
import { notifications } from './schema/notifications.ts';
import { recordings } from './schema/recordings.ts';
import { rules } from './schema/rules.ts';
import { takeCalls } from './schema/take-calls.ts';
import { takeSlot } from './schema/take-slot.ts';
import { trunks } from './schema/trunks.ts';

export type Schema = {
  /** The release that defined the tables in their current form. */
  readonly version: string;
  /** SQL statements, executed in this order. Builds of a release may have different ones. */
  readonly tables: readonly string[];
  /** SQL by function name. */
  readonly functions: Readonly<Record<string, string>>;
};

const currentSchema: Schema = {
  version: '0.9',
  tables: [
    ...[apps, calls, trunks, nodes, notifications, consoleTables, messages, companion, rules],
    recordings,
    restPartitions,
  ],
  functions: {
    take_calls: takeCalls,
    take_slot: takeSlot,
    lock_calls: lockCalls,
    lock_campaigns: lockCampaigns,
  },
};

/** A database's name in messages, and advice in case this version can't use the database. */
export type DatabaseHome = { readonly name: string; readonly remedy: string };

export const postgresHome: DatabaseHome = {
  name: 'the database at DATABASE_URL',
  remedy: 'name an empty database there',
};

export function pgliteHome(dataDir: string): DatabaseHome {
  const remedy = 'move the whole folder away, and the next start makes a new one';
  return { name: `the data folder ${dataDir}`, remedy };
}

/** The letters `offhook` as a number, which no other program uses for an advisory lock. */
const lockKey = '31366214770880363';
/**
 * Nodes that start at the same time wait for the first of them. If that takes this long, the first
 * node must be stuck.
 */
const maxWaitMs = 120_000;
/**
 * Names the `schema_migrations` row that contains the tables' version. All other rows are
 * functions.
 */
const tablesRow = 'tables';
const notesTable = `
create table if not exists schema_migrations (
  name text primary key,
  version text not null,
  applied_at timestamptz(3) not null
);`;

/**
 * Checks the database's version without writing anything.
 *
 * @returns a sentence that says what to do, or undefined if this version can use the database
 */
export async function refusalOf(
  sql: Pick<PoolClient, 'query'>,
  home: DatabaseHome,
): Promise<string | undefined> {
  return refusal(await readVersions(sql), home, buildOf(currentSchema));
}

/**
 * Creates the missing parts of the schema in one transaction.
 *
 * @throws Error with the sentence from `refusalOf`
 */
export async function ensureSchema(
  pool: Pool,
  { logger, home }: { readonly logger: Logger; readonly home: DatabaseHome },
  schema: Schema = currentSchema,
): Promise<void> {
  const client = await pool.connect();
  let failure: Error | undefined;
  try {
    await client.query('begin');
    await client.query(`set local statement_timeout = ${maxWaitMs}`);
    await client.query(`set local lock_timeout = ${maxWaitMs}`);
    await patiently(client, `select pg_advisory_xact_lock(${lockKey})`);
    const made = await makeMissing(client, home, schema);
    await client.query('commit');
    if (made.length > 0) logger.info({ made, version: schema.version }, 'database schema created');
  } catch (error) {
    failure =
      error instanceof OtherVersion
        ? error
        : new Error(`${home.name} did not accept the schema`, { cause: error });
    await client.query('rollback').catch(() => undefined);
    throw failure;
  } finally {
    client.release(failure);
  }
}

class OtherVersion extends Error {}

/**
 * @returns the names of the rows that it added to `schema_migrations`: the tables' row and
 * functions
 */
async function makeMissing(
  client: PoolClient,
  home: DatabaseHome,
  schema: Schema,
): Promise<readonly string[]> {
  const { tables, functions } = schema;
  const known = await readVersions(client);
  const refused = refusal(known, home, buildOf(schema));
  if (refused !== undefined) throw new OtherVersion(refused);
  const made: string[] = [];
  const make = async (name: string, noted: string, sql: string): Promise<void> => {
    await patiently(client, sql);
    await client.query(
      `insert into schema_migrations (name, version, applied_at) values ($1, $2, now())
       on conflict (name) do update set version = excluded.version, applied_at = excluded.applied_at`,
      [name, noted],
    );
    made.push(name);
  };
  if (known.size === 0) await make(tablesRow, buildOf(schema), [notesTable, ...tables].join('\n'));
  for (const [name, sql] of Object.entries(functions)) {
    const hash = hashOf(sql);
    // `create or replace` would keep the old parameters and columns, so we drop the function first.
    if (known.get(name) !== hash)
      await make(name, hash, `drop function if exists ${name};\n${sql}`);
  }
  return made;
}

/**
 * Reads the recorded versions by name. Note that versions before 0.9 recorded a number for each
 * migration.
 */
async function readVersions(sql: Pick<PoolClient, 'query'>): Promise<ReadonlyMap<string, string>> {
  const { rows: tables } = await sql.query(
    `select where to_regclass('schema_migrations') is not null`,
  );
  if (tables.length === 0) return new Map();
  const { rows } = await sql.query<{ name: string; version: string }>(
    'select name, version::text from schema_migrations',
  );
  return new Map(rows.map((row) => [row.name, row.version]));
}

/**
 * Returns the release and a hash of its tables, e.g. `0.9+1f2e3d4c`, so that a build with other
 * tables can't be mistaken for this one. Comments and line breaks don't count.
 */
function buildOf({ version, tables }: Schema): string {
  const statements = tables.join('\n').replace(/--.*$/gm, '').replace(/\s+/g, ' ').trim();
  return `${version}+${hashOf(statements).slice(0, 8)}`;
}

function hashOf(sql: string): string {
  return createHash('sha256').update(sql).digest('hex');
}

/** @param build what `buildOf` returns for this version */
function refusal(
  known: ReadonlyMap<string, string>,
  { name, remedy }: DatabaseHome,
  build: string,
): string | undefined {
  const found = known.get(tablesRow);
  if (known.size === 0 || found === build) return undefined;
  const [version = ''] = build.split('+');
  const release = found?.split('+')[0];
  if (release === version) {
    return `${name} was made by another build of Offhook ${version}, and this one cannot read its data: ${remedy}`;
  }
  const order = release?.localeCompare(version, 'en', { numeric: true });
  return order !== undefined && order > 0
    ? `${name} was made by Offhook ${release}, and this is ${version}: start Offhook ${release} or later`
    : `${name} was made by Offhook ${release ?? '0.2 or earlier'}, and ${version} cannot read its data: ${remedy}`;
}

/**
 * Runs a statement with a long time-out, because the pool's own time-out is meant for small
 * statements.
 */
async function patiently(client: PoolClient, text: string): Promise<void> {
  const query = { text, query_timeout: maxWaitMs };
  await client.query(query);
}
