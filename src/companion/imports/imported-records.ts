// Stores an import's records in one statement, so either all of them are stored or none, and reads
// stored records in pages.

import type { Pool } from 'pg';
import type { z } from 'zod';
import { identifier } from '../../lib/ids.ts';
import { jsonRows, storableJson } from '../../store/json-rows.ts';
import { all, sql } from '../../store/sql.ts';
import { cursorAfter, type Paged, type PageQuery, pageStatement, readCursor } from '../pages.ts';
import type { importedPage } from './skill-group-schemas.ts';

export type Import = {
  readonly accountId: string;
  readonly orgId: string;
  readonly type: string;
  readonly botId: string;
  readonly importedBy: string;
  readonly importedAt: Date;
  readonly records: readonly { readonly _id: string }[];
};

// Sorted, so two imports of the same records lock them in the same order.
const statement = `
insert into imported_records (account_id, org_id, type, record_id, bot_id, record, imported_at, imported_by)
select $2, $3, $4, record->>'_id', $5, record, $6, $7
from json_to_recordset($1::json) as r(record jsonb)
order by record->>'_id' collate "C"
on conflict (account_id, org_id, type, record_id) do update
  set bot_id = excluded.bot_id, record = excluded.record, imported_at = excluded.imported_at,
    imported_by = excluded.imported_by`;

export async function storeRecords(pool: Pool, wanted: Import): Promise<void> {
  const rows = wanted.records.map((record) => storableJson({ record }));
  await pool.query(statement, [
    jsonRows(rows),
    wanted.accountId,
    wanted.orgId,
    wanted.type,
    wanted.botId,
    wanted.importedAt,
    wanted.importedBy,
  ]);
}

type ImportedPage = z.output<typeof importedPage>;
type SelectedRecord = Paged & {
  readonly record_id: string;
  readonly bot_id: string;
  readonly record: ImportedPage['records'][number]['record'];
  readonly imported_at: Date;
  readonly imported_by: string;
};

/** @throws ProblemError if the cursor isn't valid */
export async function readRecords(
  pool: Pick<Pool, 'query'>,
  scope: Pick<Import, 'accountId' | 'orgId' | 'type'>,
  query: PageQuery,
): Promise<ImportedPage> {
  const after = readCursor(query, (text) => identifier.safeParse(text).data);
  const wanted = all([
    sql`account_id = ${scope.accountId}`,
    sql`org_id = ${scope.orgId}`,
    sql`type = ${scope.type}`,
    after === undefined ? undefined : sql`record_id > ${after}`,
  ]);
  const { rows } = await pool.query<SelectedRecord>(
    pageStatement({
      select: sql`select record_id, bot_id, record, imported_at, imported_by from imported_records where ${wanted}`,
      order: sql`record_id`,
      document: sql`record`,
      limit: query.limit,
    }),
  );
  return {
    records: rows.map((row) => ({
      record: row.record,
      botId: row.bot_id,
      importedAt: row.imported_at.toISOString(),
      importedBy: row.imported_by,
    })),
    ...cursorAfter(rows, (last) => last.record_id),
  };
}
