// Pages of stored items, newest first or by id, with a cursor for the next page. We also limit a
// page's size in bytes, because two hundred items of the maximum size take 100 MB, and they are in
// memory twice.

import { z } from 'zod';
import { invalidRequest } from '../http/problem.ts';
import { type Sql, sql } from '../store/sql.ts';

const maxPageBytes = 8 * 1_024 * 1_024;

/** Spread this into a strict object. Otherwise an unknown filter would silently list everything. */
export const pageParameters = {
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(200)
    .default(50)
    .describe('maximum number of items in a page, which ends early at 8 MiB'),
  cursor: z.string().min(1).max(1_024).exactOptional().describe("the previous page's `nextCursor`"),
};
export type PageQuery = { readonly limit: number; readonly cursor?: string };

export const nextCursor = z.string().exactOptional().describe('absent on the last page');

/** `pageStatement` adds this column to each row. It counts the rows found, up to `limit` + 1. */
export type Paged = { readonly found: number };

/**
 * Selects as many rows from `select`, in order, as fit into `limit` and the size of a page. The
 * first row always fits. We read one row beyond `limit` to see whether there is another page.
 */
export function pageStatement(parts: {
  /** The query with its conditions, but without order and limit. */
  readonly select: Sql;
  readonly order: Sql;
  /** The column that determines a row's size. */
  readonly document: Sql;
  readonly limit: number;
}): Sql {
  const { select, order, document, limit } = parts;
  const bytes = sql`octet_length(${document}::text)`;
  return sql`
select * from (
  select *, sum(${bytes}) over (order by ${order}) - ${bytes} as bytes_before,
    (count(*) over ())::integer as found
  from (${select} order by ${order} limit ${limit + 1}) as page) as measured
where bytes_before < ${maxPageBytes}
order by ${order}
limit ${limit}`;
}

/** Returns the next page's cursor, if there is a next page. */
export function cursorAfter<Row extends Paged>(
  rows: readonly Row[],
  positionOf: (last: Row) => string,
): { readonly nextCursor?: string } {
  const last = rows.at(-1);
  if (last === undefined || last.found <= rows.length) return {};
  return { nextCursor: Buffer.from(positionOf(last)).toString('base64url') };
}

/** @throws ProblemError if the cursor isn't a page's `nextCursor` */
export function readCursor<Position>(
  { cursor }: PageQuery,
  read: (text: string) => Position | undefined,
): Position | undefined {
  if (cursor === undefined) return undefined;
  const text = Buffer.from(cursor, 'base64url').toString();
  const isWhole = Buffer.from(text).toString('base64url') === cursor;
  const position = isWhole ? read(text) : undefined;
  if (position !== undefined) return position;
  throw invalidRequest([{ path: 'cursor', message: 'is not the `nextCursor` of a page' }]);
}
