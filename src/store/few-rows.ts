// Statements get their query plans while their tables are small, and keep them. Of rows that are given as JSON the planner expects a
// hundred, for which reading a whole small table is cheaper than a hundred looks into an index; when the table has grown, that is
// what every statement still does.

/** Holds for every row, and lets the planner expect one, so that it looks each up by its key. `column`: a text that is not null. */
export function fewRows(column: string): string {
  return `${column} = ${column} || ''`;
}
