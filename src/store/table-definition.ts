// What a data table is: its columns with their types, and the apps that may write to it. Made by the operator of the service.

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

/** What the service adds to each row. */
export const systemColumns = [
  'Created_On',
  'Updated_On',
  'Created_By',
  'Updated_By',
  'sys_Id',
  '_id',
] as const;

/** A row of so many short values still fits into a request. */
export const maxColumns = 500;

/** JSON parsers refuse the last one: no request could ever fill it. */
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

/** Names that differ in case alone are a mistake waiting to happen. */
function areDistinct(columns: readonly { readonly name: string }[]): boolean {
  return new Set(columns.map(({ name }) => name.toLowerCase())).size === columns.length;
}
