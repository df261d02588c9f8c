// Defines and checks data table definitions, which are created by the service's operator. A
// definition contains the columns with their types, and the apps that may write to the table.

import { z } from 'zod';
import { plainId } from '../lib/ids.ts';

export const columnTypes = [
  'string',
  'number',
  'integer',
  'boolean',
  'date',
  'datetime',
  'json',
] as const;
export type ColumnType = (typeof columnTypes)[number];

/** The columns that the service adds to each row. */
export const systemColumns = [
  'Created_On',
  'Updated_On',
  'Created_By',
  'Updated_By',
  'sys_Id',
  '_id',
] as const;

/** A row with this many short values still fits in a request. */
export const maxColumns = 500;

/** Our JSON parser rejects `__proto__`, so no request could ever fill such a column. */
const reservedNames = new Set([...systemColumns, '__proto__'].map((name) => name.toLowerCase()));

const column = z.strictObject({
  name: z
    .string()
    .max(128)
    .regex(/^(?!\s)[^\p{C}]+(?<!\s)$/u, 'must be text without control characters or outer spaces')
    .refine((name) => !reservedNames.has(name.toLowerCase()), 'is a name that the service uses'),
  type: z.enum(columnTypes),
  required: z.boolean().exactOptional(),
});

export const tableDefinition = z.strictObject({
  name: plainId,
  columns: z.array(column).min(1).max(maxColumns).refine(areDistinct, 'must have distinct names'),
  writers: z
    .array(
      z.union([z.literal('*'), plainId], 'must be an app id, or * for every app of the account'),
    )
    .max(1_000),
});
export type TableDefinition = Readonly<z.infer<typeof tableDefinition>>;

/** Ignores case, because people would confuse two names that only differ in case. */
function areDistinct(columns: readonly { readonly name: string }[]): boolean {
  return new Set(columns.map(({ name }) => name.toLowerCase())).size === columns.length;
}
