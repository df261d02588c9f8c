// Rows of a data table as they are read: newest first, whichever definition they were written under.

import type { Pool } from 'pg';
import type { DefinedTable, StoredRow } from '../../store/data-tables.ts';
import { cursorAfter, type Paged, type PageQuery, pageStatement, readCursor } from '../pages.ts';

type Columns = Readonly<Record<string, unknown>>;

type SelectedRow = Paged & {
  readonly sys_id: string;
  readonly row: Columns;
  readonly created_on: Date;
  readonly updated_on: Date;
  readonly created_by: string;
  readonly updated_by: string;
};

const order = 'created_on desc, sys_id desc';
const ofTable = `select sys_id, row, created_on, updated_on, created_by, updated_by from data_rows
  where account_id = $1 and table_name = $2`;
const parts = { order, document: 'row', limit: '$3' };
export const firstRows = pageStatement({ ...parts, select: ofTable });
export const nextRows = pageStatement({
  ...parts,
  select: `${ofTable} and (created_on, sys_id) < ($4::timestamptz, $5)`,
});

export type RowPage = {
  readonly rows: readonly (Columns & SystemColumns)[];
  readonly nextCursor?: string;
};

/** @throws ProblemError where the cursor is none. */
export async function readRows(
  pool: Pick<Pool, 'query'>,
  { accountId, name }: Pick<DefinedTable, 'accountId' | 'name'>,
  query: PageQuery,
): Promise<RowPage> {
  const position = readCursor(query, positionIn);
  const values = [accountId, name, query.limit];
  const { rows } = await pool.query<SelectedRow>(
    position === undefined ? firstRows : nextRows,
    position === undefined ? values : [...values, position.createdOn, position.sysId],
  );
  return {
    rows: rows.map((row) => ({ ...row.row, ...systemColumnsOf(storedOf(row)) })),
    ...cursorAfter(rows, (last) => `${last.created_on.getTime()}.${last.sys_id}`),
  };
}

type SystemColumns = ReturnType<typeof systemColumnsOf>;

/** What the service adds to a row, as it is answered. */
export function systemColumnsOf(stored: StoredRow) {
  return {
    Created_On: stored.createdOn.toISOString(),
    Updated_On: stored.updatedOn.toISOString(),
    Created_By: stored.createdBy,
    Updated_By: stored.updatedBy,
    sys_Id: stored.sysId,
    _id: stored.sysId.replace('sys-', ''),
  };
}

function storedOf(row: SelectedRow): StoredRow {
  return {
    ...{ sysId: row.sys_id, createdOn: row.created_on, updatedOn: row.updated_on },
    ...{ createdBy: row.created_by, updatedBy: row.updated_by },
  };
}

function positionIn(text: string) {
  const [, createdMs, sysId] = /^(\d{1,14})\.(sys-[0-9a-f-]{36})$/.exec(text) ?? [];
  if (createdMs === undefined || sysId === undefined) return undefined;
  return { createdOn: new Date(Number(createdMs)), sysId };
}
