// Reads the lines of an import from a stream, without keeping more than one of them. A line that is
// too long is skipped, so that a client can't fill the memory with it.

import { isUtf8 } from 'node:buffer';

/** The longest valid line has escapes for a number of 512 and a source of 64 characters. */
const maxLineBytes = 8_192;
const lineFeed = 0x0a;

export type Line = {
  /** Counts from 1. */
  readonly number: number;
  /** Undefined if the line can't be read, for the reason in `problem`. */
  readonly text?: string;
  readonly problem?: string;
};

/** Yields the lines of a body, without their ends. Empty lines are skipped, but counted. */
export async function* linesOf(body: AsyncIterable<Buffer>): AsyncGenerator<Line> {
  const begun = new BegunLine();
  for await (const chunk of body) {
    let from = 0;
    for (let at = chunk.indexOf(lineFeed); at >= 0; at = chunk.indexOf(lineFeed, from)) {
      begun.add(chunk.subarray(from, at));
      from = at + 1;
      const line = begun.end();
      if (line !== undefined) yield line;
    }
    begun.add(chunk.subarray(from));
  }
  const last = begun.end();
  if (last !== undefined) yield last;
}

/** The line that is being read. */
class BegunLine {
  #number = 0;
  #bytes: Buffer = Buffer.alloc(0);
  #isTooLong = false;

  add(bytes: Buffer): void {
    this.#isTooLong ||= this.#bytes.length + bytes.length > maxLineBytes;
    // A copy, so that a chunk isn't kept for its last bytes.
    this.#bytes = this.#isTooLong ? Buffer.alloc(0) : Buffer.concat([this.#bytes, bytes]);
  }

  /** @returns undefined if the line is empty */
  end(): Line | undefined {
    this.#number += 1;
    const [number, bytes, isTooLong] = [this.#number, this.#bytes, this.#isTooLong];
    this.#bytes = Buffer.alloc(0);
    this.#isTooLong = false;
    if (isTooLong) return { number, problem: `is longer than ${maxLineBytes} bytes` };
    if (!isUtf8(bytes)) return { number, problem: 'is not UTF-8' };
    const text = bytes
      .toString('utf8')
      .replace(number === 1 ? /^\uFEFF/ : '', '')
      .trim();
    return text === '' ? undefined : { number, text };
  }
}

/**
 * Splits a line of CSV (RFC 4180). A quoted cell can't contain a line break, because no value of a
 * suppression may.
 *
 * @returns undefined if a quote is missing or misplaced
 */
export function csvCells(line: string): readonly string[] | undefined {
  const cells: string[] = [];
  let at = 0;
  for (;;) {
    const quoted = /"((?:[^"]|"")*)"(?=,|$)/y;
    const plain = /[^",]*(?=,|$)/y;
    quoted.lastIndex = at;
    plain.lastIndex = at;
    const match = quoted.exec(line) ?? plain.exec(line);
    if (match === null) return undefined;
    cells.push(match[1] === undefined ? match[0] : match[1].replaceAll('""', '"'));
    at += match[0].length;
    if (at === line.length) return cells;
    at += 1;
  }
}
