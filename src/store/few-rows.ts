// Statements get their query plans while their tables are small, and keep them. For rows that
// arrive as JSON, the planner expects a hundred rows. Reading a whole small table is then cheaper
// than a hundred index look-ups. Once the table has grown, such a plan still reads it whole.

/**
 * Returns a condition that is true for every row but makes the planner expect one row, so that it
 * looks up each row by its key.
 *
 * @param column the name of a text column that is not null
 */
export function fewRows(column: string): string {
  return `${column} = ${column} || ''`;
}
