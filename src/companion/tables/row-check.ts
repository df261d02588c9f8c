// Checks a client's row against the table's definition. Note that we must only ever compare column
// names, because a column may be called `constructor` or contain quotes.

import { z } from 'zod';
import type { MemberError } from '../../http/problem.ts';
import { jsonProblem } from '../../http/stored-json.ts';
import { describeIssues } from '../../lib/issues.ts';
import {
  type ColumnType,
  maxColumns,
  systemColumns,
  type TableDefinition,
} from '../../store/table-definition.ts';

/** In practice, values never get this large, because the limit for the whole body is lower. */
const maxValueBytes = 1_024 * 1_024;

const checkStorable: z.core.CheckFn<unknown> = ({ value, issues }) => {
  const message = jsonProblem(value, maxValueBytes);
  if (message !== undefined) issues.push({ code: 'custom', input: value, message });
};

const schemaOf: Readonly<Record<ColumnType, z.ZodType>> = {
  string: z.string().check(checkStorable),
  number: z.number(),
  integer: z.int(),
  boolean: z.boolean(),
  date: z.iso.date('must be a date, e.g. 2026-11-20'),
  datetime: z.iso
    .datetime({
      offset: true,
      error: 'must be an ISO 8601 time with its zone, e.g. 2026-11-20T09:30:00Z',
    })
    .transform((text) => new Date(text).toISOString())
    // At either end of the calendar, converting to UTC may leave the range of four-digit years.
    .refine((text) => text.length === 24, 'must have a four-digit year'),
  json: z.unknown().check(checkStorable),
};

export type CheckedRow =
  | { readonly ok: true; readonly row: Readonly<Record<string, unknown>> }
  | { readonly ok: false; readonly errors: readonly MemberError[] };

/**
 * Returns the row to store, with times in UTC. If a column isn't required, it may be null or
 * missing.
 */
export function checkRow(
  { columns }: Pick<TableDefinition, 'columns'>,
  data: Readonly<Record<string, unknown>>,
): CheckedRow {
  const given = new Map(Object.entries(data));
  if (given.size > maxColumns) {
    const message = `must have at most ${maxColumns} columns`;
    return { ok: false, errors: [{ path: 'data', message }] };
  }
  const errors: MemberError[] = [];
  const row: [string, unknown][] = [];
  for (const column of columns) {
    const value = given.get(column.name);
    given.delete(column.name);
    const checked = checkValue(column, value);
    if ('message' in checked) errors.push({ path: `data.${column.name}`, ...checked });
    else if (checked.value !== undefined) row.push([column.name, checked.value]);
  }
  for (const name of given.keys()) {
    const isSystem = systemColumns.some((column) => column === name);
    const message = isSystem ? 'is set by the service' : 'is not a column of this table';
    errors.push({ path: `data.${name}`, message });
  }
  return errors.length > 0 ? { ok: false, errors } : { ok: true, row: Object.fromEntries(row) };
}

function checkValue(
  { type, required = false }: TableDefinition['columns'][number],
  value: unknown,
): { readonly value: unknown } | { readonly message: string } {
  if (value === undefined || value === null) {
    return required ? { message: 'is required' } : { value };
  }
  const { data, error } = schemaOf[type].safeParse(value, { error: describeIssues });
  const [issue] = error?.issues ?? [];
  return issue === undefined ? { value: data } : { message: issue.message };
}
