// Reads the Range header (RFC 9110 section 14) of a request for bytes. Only single ranges are
// served: whoever asks for several gets the whole, as the section permits.

export type ByteRange = { readonly start: number; readonly end: number };

/**
 * @returns undefined if the whole is to be sent; `unsatisfiable` if the range lies behind the end
 */
export function readRange(
  header: string | undefined,
  bytes: number,
): ByteRange | undefined | 'unsatisfiable' {
  const [, first = '', last = ''] =
    /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header?.trim() ?? '') ?? [];
  if (first === '' && last === '') return undefined;
  if (first === '') {
    const length = Math.min(Number(last), bytes);
    return length === 0 ? 'unsatisfiable' : { start: bytes - length, end: bytes - 1 };
  }
  const start = Number(first);
  const end = last === '' ? bytes - 1 : Math.min(Number(last), bytes - 1);
  // A range whose end is before its start is not valid, and so is ignored.
  if (last !== '' && Number(last) < start) return undefined;
  return start >= bytes ? 'unsatisfiable' : { start, end };
}
