// Builds the single parameter of a statement that writes many rows: a JSON array for
// `json_to_recordset`. The statement's text is therefore the same for any number of rows.

/**
 * Returns JSON that `jsonb` accepts. PostgreSQL rejects U+0000 and lone surrogates, but a SIP peer
 * may send such characters in a reason phrase, or a client in metadata. We replace them with
 * U+FFFD, because we must be able to store a call's end no matter what the other side sent.
 */
export function storableJson(value: unknown): string {
  // JSON.stringify only writes U+0000 and lone surrogates as such escapes. The pattern also matches
  // escaped backslashes in order to skip them.
  return JSON.stringify(value).replace(/\\(?:\\|u0000|ud[89a-f][0-9a-f]{2})/g, (match) =>
    match === '\\\\' ? match : '\\ufffd',
  );
}

/** Joins JSON rows into the parameter of `json_to_recordset($1::json)`. */
export function jsonRows(rows: readonly string[]): string {
  return `[${rows.join(',')}]`;
}
