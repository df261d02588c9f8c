// Pages of stored items, newest first or by id, with a cursor for the next page. The size of a page
// is limited too, because two hundred of the largest items take 100 MB and are in memory twice.

import { z } from 'zod';
import { invalidRequest } from '../http/problem.ts';
import { type Sql, sql } from '../store/sql.ts';

const maxPageBytes = 8 * 1_024 * 1_024;

/** Spread it into a strict object, so that an unknown filter does not silently list everything. */
export const pageParameters = {
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(200)
    .default(50)
    .describe('maximum number of items in a page, which ends early at 8 MiB'),
  cursor: z
    .string()
    .min(1)
    .max(1_024)
    .exactOptional()
    .describe('`nextCursor` of the previous page'),
};
export type PageQuery = { readonly limit: number; readonly cursor?: string };

export const nextCursor = z.string().exactOptional().describe('absent on the last page');

/** Column of each row of `pageStatement`: the number of found rows, up to one more than `limit`. */
export type Paged = { readonly found: number };

/**
 * Selects rows of `select` in order, as many as fit into `limit` and the size of a page. The first
 * row always fits. It reads one row more than `limit`, which reveals whether another page follows.
 */
export function pageStatement(parts: {
  /** The query with its conditions, but without order and limit. */
  readonly select: Sql;
  readonly order: Sql;
  /** The column that determines the size of a row. */
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

/** Returns the cursor of the next page, if there is one. */
export function cursorAfter<Row extends Paged>(
  rows: readonly Row[],
  positionOf: (last: Row) => string,
): { readonly nextCursor?: string } {
  const last = rows.at(-1);
  if (last === undefined || last.found <= rows.length) return {};
  return { nextCursor: Buffer.from(positionOf(last)).toString('base64url') };
}

/** @throws ProblemError if the cursor is not the `nextCursor` of a page */
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
