// PostgreSQL plans our statements while tables are still small, and then caches the plans. If a
// statement's rows arrive as JSON, the planner expects a hundred of them, so it decides that
// reading the whole small table is cheaper than a hundred index look-ups. Once the table has grown,
// the cached plan still reads all of it.

/**
 * Returns a condition that is true for every row but makes the planner expect a single row. The
 * planner then looks up each row by its key.
 *
 * @param column the name of a text column that is not null
 */
export function fewRows(column: string): string {
  return `${column} = ${column} || ''`;
}
