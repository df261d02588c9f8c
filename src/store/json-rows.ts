// Builds the only parameter of a statement that takes many rows: one JSON array, read by
// `json_to_recordset`. The text of the statement is therefore the same for any number of rows.

/**
 * Returns JSON that `jsonb` accepts. PostgreSQL refuses U+0000 and lone surrogates, which a SIP
 * peer may send in a reason phrase and a client in metadata. Both become U+FFFD, because the end of
 * a call must be storable whatever the far end sent.
 */
export function storableJson(value: unknown): string {
  // JSON.stringify writes only these two as such escapes. The pattern also matches an escaped
  // backslash, to step over it.
  return JSON.stringify(value).replace(/\\(?:\\|u0000|ud[89a-f][0-9a-f]{2})/g, (match) =>
    match === '\\\\' ? match : '\\ufffd',
  );
}

/** Joins JSON rows into the parameter of `json_to_recordset($1::json)`. */
export function jsonRows(rows: readonly string[]): string {
  return `[${rows.join(',')}]`;
}
