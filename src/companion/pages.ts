// Pages of what callers stored: newest first or by id, each with a cursor to the next. A page ends at a number of items, or at
// a size: two hundred of the largest would be 100 MB, in memory twice.

import { z } from 'zod';
import { invalidRequest } from '../http/problem.ts';
import { type Sql, sql } from '../store/sql.ts';

const maxPageBytes = 8 * 1_024 * 1_024;

/** To be spread into a strict object: a filter that is not known would silently list everything. */
export const pageParameters = {
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(200)
    .default(50)
    .describe('in one page, which ends early at 8 MiB'),
  cursor: z.string().min(1).max(1_024).exactOptional().describe('`nextCursor` of the page before'),
};
export type PageQuery = { readonly limit: number; readonly cursor?: string };

export const nextCursor = z.string().exactOptional().describe('absent on the last page');

/** A row of `pageStatement`. */
export type Paged = { readonly found: number };

/**
 * The rows of `select` in their order, as far as they fit: of `limit` rows and one more, which tells whether there is another
 * page. The first always fits.
 */
export function pageStatement(parts: {
  /** With its conditions, and neither order nor limit. */
  readonly select: Sql;
  readonly order: Sql;
  /** The column that is large. */
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

/** The cursor of the next page, where there is one. */
export function cursorAfter<Row extends Paged>(
  rows: readonly Row[],
  positionOf: (last: Row) => string,
): { readonly nextCursor?: string } {
  const last = rows.at(-1);
  if (last === undefined || last.found <= rows.length) return {};
  return { nextCursor: Buffer.from(positionOf(last)).toString('base64url') };
}

/** @throws ProblemError where no page gave it. */
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
