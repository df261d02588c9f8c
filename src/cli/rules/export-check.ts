// Checks an export of records: its last line counts the records and has the SHA-256 of everything
// before that line.

import { createHash } from 'node:crypto';
import { z } from 'zod';

export type CheckedExport =
  | { readonly ok: true; readonly records: number; readonly sha256: string }
  /** `problem` says what is wrong with the file, for people. */
  | { readonly ok: false; readonly problem: string };

type Trailer = { readonly records: number; readonly sha256: string };

/** Longer than any record. A file with a longer line is no export, and must not fill the memory. */
const maxLineBytes = 1_048_576;
const newline = 0x0a;

const jsonTrailer = z.object({
  trailer: z.literal(true),
  records: z.number().int(),
  sha256: z.string(),
});

/** Reads a file in parts, e.g. while they pass on to their reader. */
export class ExportCheck {
  readonly #hash = createHash('sha256');
  /** The last line that has begun, which may be the last one of the file. */
  #held = Buffer.alloc(0);
  #isTooLong = false;

  add(part: Uint8Array): void {
    if (this.#isTooLong) return;
    const text = Buffer.concat([this.#held, part]);
    const lineAt = text.lastIndexOf(newline, -2) + 1;
    this.#hash.update(text.subarray(0, lineAt));
    this.#held = text.subarray(lineAt);
    this.#isTooLong = this.#held.length > maxLineBytes;
  }

  /** Call this once, after the last part. */
  finish(): CheckedExport {
    const trailer = this.#isTooLong ? undefined : readTrailer(this.#held.toString());
    if (trailer === undefined) {
      return { ok: false, problem: 'it is incomplete: its last line does not count the records' };
    }
    if (this.#hash.digest('hex') !== trailer.sha256) {
      return { ok: false, problem: 'it was changed: its SHA-256 is not that of its last line' };
    }
    return { ok: true, ...trailer };
  }
}

/** @returns undefined if the line is not the last line of an export */
function readTrailer(line: string): Trailer | undefined {
  const csv = /^# records=(\d+) sha256=([0-9a-f]{64})\r\n$/.exec(line);
  if (csv !== null) return { records: Number(csv[1]), sha256: csv[2] ?? '' };
  try {
    const { records, sha256 } = jsonTrailer.parse(JSON.parse(line));
    return line.endsWith('\n') ? { records, sha256 } : undefined;
  } catch {
    return undefined;
  }
}
