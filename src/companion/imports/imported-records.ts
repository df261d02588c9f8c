// Stores what an import brings: all of it or nothing, in one statement.

import type { Pool } from 'pg';
import { jsonRows, storableJson } from '../../store/json-rows.ts';

export type Import = {
  readonly accountId: string;
  readonly orgId: string;
  readonly type: string;
  readonly botId: string;
  readonly importedBy: string;
  readonly importedAt: Date;
  readonly records: readonly { readonly _id: string }[];
};

// Sorted, so that two imports of the same records wait for each other in the same order.
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
