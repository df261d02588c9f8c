// Re-encrypts the stored secrets after SECRETS_KEY has changed, page by page. Each value is
// replaced only if it's still the one that was read, so it's safe beside running gateways. There is
// no state besides the values: a run that was killed is repeated, and skips what it has done.

import { type KeyRollout, readRollout } from './key-rollout.ts';
import type { Queries } from './queries.ts';
import { type SealedColumn, sealedColumns } from './sealed-columns.ts';
import { headerBytes, keyIdIn, type SecretBox } from './secrets.ts';

/** Rows per page. A page with the longest notification headers takes a few MB. */
const pageRows = 1_000;
/** The same in base64. */
const headerChars = (headerBytes / 3) * 4;

/** The place at which the next page begins. */
export type ReencryptionCursor = { readonly column: number; readonly after: string };

export type ReencryptionPage = {
  /** E.g. `apps.jwt_secret`. */
  readonly column: string;
  /** Values that were re-encrypted, or that need it (in a dry run). */
  readonly replaced: number;
  /** Values that somebody else was changing. The next run finds them. */
  readonly busy: number;
  /** Values that can't be opened, by reason: `damaged`, or `key …` with its id. They stay. */
  readonly unreadable: Readonly<Record<string, number>>;
  /** Absent after the last page. */
  readonly next?: ReencryptionCursor;
};

type SealedRow = {
  readonly key: string;
  readonly bound_to: string;
  /** Base64. */
  readonly sealed: string;
};

export type Reencryption = {
  /** Re-encrypts the next page, beginning with the first. */
  page(step: {
    readonly cursor?: ReencryptionCursor | undefined;
    readonly dryRun: boolean;
  }): Promise<ReencryptionPage>;
  rollout(): Promise<KeyRollout>;
};

export function createReencryption(pool: Queries, secrets: SecretBox): Reencryption {
  return {
    page: ({ cursor, dryRun }) => reencryptPage(pool, secrets, cursor ?? start, dryRun),
    rollout: () => readRollout(pool, secrets),
  };
}

const start: ReencryptionCursor = { column: 0, after: '' };

async function reencryptPage(
  pool: Queries,
  secrets: SecretBox,
  { column: index, after }: ReencryptionCursor,
  dryRun: boolean,
): Promise<ReencryptionPage> {
  const column = sealedColumns[index];
  if (column === undefined) throw new RangeError(`there is no sealed column ${index}`);
  const last = await lastOfPage(pool, column, after);
  const rows = last === undefined ? [] : await readRows(pool, secrets, column, { after, last });
  const { values, unreadable } = resealed(secrets, column, rows);
  const replaced = dryRun ? values.length : await replace(pool, column, values);
  const next =
    last === undefined ? { column: index + 1, after: '' } : { column: index, after: last };
  return {
    column: nameOf(column),
    replaced,
    busy: values.length - replaced,
    unreadable,
    ...(next.column < sealedColumns.length ? { next } : {}),
  };
}

/** The bound keeps each statement short, even if no row of a big table needs anything. */
async function lastOfPage(
  pool: Queries,
  { table, key }: SealedColumn,
  after: string,
): Promise<string | undefined> {
  const { rows } = await pool.query<{ last: string | null }>(
    `select max(key) as last from (
       select ${key} as key from ${table} where ${key} > $1 order by ${key} limit ${pageRows}
     ) page`,
    [after],
  );
  return rows[0]?.last ?? undefined;
}

/** Reads the page's values that aren't sealed with the current key. */
async function readRows(
  pool: Queries,
  { headers }: SecretBox,
  column: SealedColumn,
  { after, last }: { readonly after: string; readonly last: string },
): Promise<readonly SealedRow[]> {
  const { table, key, boundTo = key } = column;
  const sealed = base64Of(column);
  const { rows } = await pool.query<SealedRow>(
    `select ${key} as key, ${boundTo} as bound_to, ${sealed} as sealed from ${table}
     where ${key} > $1 and ${key} <= $2 and left(${sealed}, ${headerChars}) <> $3`,
    [after, last, headers.current.toString('base64')],
  );
  return rows;
}

type NewValue = { readonly key: string; readonly old: string; readonly new: string };

function resealed(
  secrets: SecretBox,
  { purpose }: SealedColumn,
  rows: readonly SealedRow[],
): { readonly values: readonly NewValue[]; readonly unreadable: Record<string, number> } {
  const known = Object.values(secrets.headers);
  const values: NewValue[] = [];
  const unreadable: Record<string, number> = {};
  for (const { key, bound_to: boundTo, sealed: old } of rows) {
    const bytes = Buffer.from(old, 'base64');
    try {
      const sealed = secrets.reseal(purpose, boundTo, bytes);
      values.push({ key, old, new: sealed.toString('base64') });
    } catch {
      const isKnown = known.some((header) => header.equals(bytes.subarray(0, headerBytes)));
      const reason = isKnown ? 'damaged' : `key ${keyIdIn(bytes)}`;
      unreadable[reason] = (unreadable[reason] ?? 0) + 1;
    }
  }
  return { values, unreadable };
}

/**
 * Replaces values that haven't changed since they were read. Skips locked rows, because waiting for
 * them while holding others could end in a deadlock with a gateway's statements.
 */
async function replace(
  pool: Queries,
  column: SealedColumn,
  values: readonly NewValue[],
): Promise<number> {
  if (values.length === 0) return 0;
  const { table, key, column: name, path } = column;
  const replacement =
    path === undefined
      ? `decode(wanted.new_value, 'base64')`
      : `jsonb_set(${table}.${name}, '{${path.join(',')}}', to_jsonb(wanted.new_value))`;
  const { rowCount } = await pool.query(
    `with wanted as (
       select * from unnest($1::text[], $2::text[], $3::text[]) as wanted (key, old_value, new_value)
     ), locked as (
       select ${key} as key from ${table} join wanted on wanted.key = ${table}.${key}
       where ${base64Of(column)} = wanted.old_value
       for update of ${table} skip locked
     )
     update ${table} set ${name} = ${replacement}
     from wanted join locked using (key) where ${table}.${key} = wanted.key`,
    [values.map((value) => value.key), values.map((value) => value.old), values.map((v) => v.new)],
  );
  return rowCount ?? 0;
}

/** PostgreSQL breaks base64 into lines. */
function base64Of({ table, column, path }: SealedColumn): string {
  return path === undefined
    ? `translate(encode(${table}.${column}, 'base64'), E'\\n', '')`
    : `${table}.${column} #>> '{${path.join(',')}}'`;
}

function nameOf({ table, column, path = [] }: SealedColumn): string {
  return [table, column, ...path].join('.');
}

export type ForeignSecrets = {
  /** E.g. `apps.jwt_secret`. */
  readonly column: string;
  readonly keyId: string;
  readonly count: number;
  /** True if the requests of some app fail without them. */
  readonly isRequired: boolean;
};

/**
 * Counts the secrets of apps, bots and connections that none of the configured keys opens. Calls
 * are too many to count at each start.
 */
export async function countForeignSecrets(
  pool: Queries,
  { headers }: SecretBox,
): Promise<readonly ForeignSecrets[]> {
  const known = Object.values(headers);
  const found: ForeignSecrets[] = [];
  for (const column of sealedColumns.filter(({ table }) => table !== 'calls')) {
    const { table, column: name, inUse = 'true' } = column;
    const { rows } = await pool.query<{ header: Buffer; count: number }>(
      `select substring(${name} for ${headerBytes}) as header, count(*)::integer as count from ${table}
       where substring(${name} for ${headerBytes}) <> all($1::bytea[]) and (${inUse}) group by 1`,
      [known],
    );
    for (const { header, count } of rows) {
      const isRequired = column.inUse !== undefined;
      found.push({ column: nameOf(column), keyId: keyIdIn(header), count, isRequired });
    }
  }
  return found;
}
