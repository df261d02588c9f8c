// Reads a data table's rows, newest first, including rows written under an older definition.

import type { DefinedTable, StoredRow } from '../../store/data-tables.ts';
import type { Queries } from '../../store/queries.ts';
import { all, type Sql, sql } from '../../store/sql.ts';
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

type Position = Pick<StoredRow, 'createdOn' | 'sysId'>;
type NamedTable = Pick<DefinedTable, 'accountId' | 'name'>;

/** Selects the rows after the position. */
export function rowsStatement(
  { accountId, name }: NamedTable,
  limit: number,
  position?: Position,
): Sql {
  const wanted = all([
    sql`account_id = ${accountId}`,
    sql`table_name = ${name}`,
    position && sql`(created_on, sys_id) < (${position.createdOn}::timestamptz, ${position.sysId})`,
  ]);
  return pageStatement({
    select: sql`select sys_id, row, created_on, updated_on, created_by, updated_by from data_rows where ${wanted}`,
    order: sql`created_on desc, sys_id desc`,
    document: sql`row`,
    limit,
  });
}

export type RowPage = {
  readonly rows: readonly (Columns & SystemColumns)[];
  readonly nextCursor?: string;
};

/** @throws ProblemError if the cursor isn't valid */
export async function readRows(
  queries: Queries,
  table: NamedTable,
  query: PageQuery,
): Promise<RowPage> {
  const position = readCursor(query, positionIn);
  const { rows } = await queries.query<SelectedRow>(rowsStatement(table, query.limit, position));
  return {
    rows: rows.map((row) => ({ ...row.row, ...systemColumnsOf(storedOf(row)) })),
    ...cursorAfter(rows, (last) => `${last.created_on.getTime()}.${last.sys_id}`),
  };
}

type SystemColumns = ReturnType<typeof systemColumnsOf>;

/** Returns the columns that the service adds to each row in a response. */
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

function positionIn(text: string): Position | undefined {
  const [, createdMs, sysId] = /^(\d{1,14})\.(sys-[0-9a-f-]{36})$/.exec(text) ?? [];
  if (createdMs === undefined || sysId === undefined) return undefined;
  return { createdOn: new Date(Number(createdMs)), sysId };
}
