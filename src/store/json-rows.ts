// Rows on their way into a statement: one JSON array as the only parameter, read by `json_to_recordset`. The text of the
// statement stays the same for any number of rows.

/**
 * JSON that `jsonb` takes. It refuses U+0000 and lone surrogates, which a SIP peer may put into a reason phrase and a caller
 * into metadata; they become U+FFFD, because a call's end must be storable whatever the far end sent.
 */
export function storableJson(value: unknown): string {
  // JSON.stringify writes exactly these as escapes. Pairs of backslashes are matched only to be stepped over.
  return JSON.stringify(value).replace(/\\(?:\\|u0000|ud[89a-f][0-9a-f]{2})/g, (match) =>
    match === '\\\\' ? match : '\\ufffd',
  );
}

/** The parameter of `json_to_recordset($1::json)`. */
export function jsonRows(rows: readonly string[]): string {
  return `[${rows.join(',')}]`;
}
