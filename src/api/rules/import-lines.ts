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
  let rest: Buffer = Buffer.alloc(0);
  let isTooLong = false;
  let number = 0;
  const lineOf = (bytes: Buffer): Line | undefined => {
    number += 1;
    const wasTooLong = isTooLong;
    isTooLong = false;
    if (wasTooLong || bytes.length > maxLineBytes) {
      return { number, problem: `is longer than ${maxLineBytes} bytes` };
    }
    if (!isUtf8(bytes)) return { number, problem: 'is not UTF-8' };
    const text = bytes
      .toString('utf8')
      .replace(number === 1 ? /^\uFEFF/ : '', '')
      .trim();
    return text === '' ? undefined : { number, text };
  };
  for await (const chunk of body) {
    let from = 0;
    for (let at = chunk.indexOf(lineFeed); at >= 0; at = chunk.indexOf(lineFeed, from)) {
      const end = chunk.subarray(from, at);
      const line = lineOf(rest.length === 0 ? end : Buffer.concat([rest, end]));
      rest = Buffer.alloc(0);
      from = at + 1;
      if (line !== undefined) yield line;
    }
    const tail = chunk.subarray(from);
    isTooLong ||= rest.length + tail.length > maxLineBytes;
    // A copy, so that the whole chunk isn't kept for its last bytes.
    rest = isTooLong ? Buffer.alloc(0) : Buffer.concat([rest, tail]);
  }
  if (rest.length === 0 && !isTooLong) return;
  const last = lineOf(rest);
  if (last !== undefined) yield last;
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
