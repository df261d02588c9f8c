// Reads the lines of an import from a stream, without keeping more than a chunk of it. A line that
// is too long is skipped, so that a client can't fill the memory with it.

import { isAscii, isUtf8 } from 'node:buffer';

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

/**
 * Yields the lines of a body without their ends, as many at a time as a chunk of the body
 * completes. Empty lines are skipped, but counted.
 */
export async function* linesOf(body: AsyncIterable<Buffer>): AsyncGenerator<readonly Line[]> {
  const begun = new BegunLine();
  let number = 0;
  for await (const chunk of body) {
    const end = chunk.lastIndexOf(lineFeed);
    if (end < 0) {
      begun.add(chunk);
      continue;
    }
    const first = chunk.indexOf(lineFeed);
    begun.add(chunk.subarray(0, first));
    const texts = [begun.end(), ...(first === end ? [] : textsIn(chunk.subarray(first + 1, end)))];
    begun.add(chunk.subarray(end + 1));
    const before = number;
    yield texts.flatMap((text, index) => lineOf(text, before + index + 1));
    number += texts.length;
  }
  yield lineOf(begun.end(), number + 1);
}

/** Undefined if the line is not UTF-8; `too-long` if it was not kept. */
type Text = { readonly text: string | undefined } | 'too-long';

/** The line that is being read. */
class BegunLine {
  #bytes: Buffer = Buffer.alloc(0);
  #isTooLong = false;

  add(bytes: Buffer): void {
    this.#isTooLong ||= this.#bytes.length + bytes.length > maxLineBytes;
    // A copy, so that a chunk isn't kept for its last bytes.
    this.#bytes = this.#isTooLong ? Buffer.alloc(0) : Buffer.concat([this.#bytes, bytes]);
  }

  end(): Text {
    const [bytes, isTooLong] = [this.#bytes, this.#isTooLong];
    this.#bytes = Buffer.alloc(0);
    this.#isTooLong = false;
    return isTooLong ? 'too-long' : textOf(bytes);
  }
}

/** Decoding all lines at once takes a third of the time, and most lists are ASCII. */
function textsIn(bytes: Buffer): readonly Text[] {
  if (isAscii(bytes)) {
    return bytes
      .toString('latin1')
      .split('\n')
      .map((text) => (text.length > maxLineBytes ? 'too-long' : { text }));
  }
  const texts: Text[] = [];
  for (let from = 0; from <= bytes.length; ) {
    const at = bytes.indexOf(lineFeed, from);
    const line = bytes.subarray(from, at < 0 ? bytes.length : at);
    texts.push(line.length > maxLineBytes ? 'too-long' : textOf(line));
    from += line.length + 1;
  }
  return texts;
}

function textOf(bytes: Buffer): Text {
  return { text: isUtf8(bytes) ? bytes.toString('utf8') : undefined };
}

/** @returns an empty list if the line is empty */
function lineOf(read: Text, number: number): readonly Line[] {
  if (read === 'too-long') return [{ number, problem: `is longer than ${maxLineBytes} bytes` }];
  if (read.text === undefined) return [{ number, problem: 'is not UTF-8' }];
  const text = (number === 1 ? read.text.replace(/^\uFEFF/, '') : read.text).trim();
  return text === '' ? [] : [{ number, text }];
}

/**
 * Splits a line of CSV (RFC 4180). A quoted cell can't contain a line break, because no value of a
 * suppression may.
 *
 * @returns undefined if a quote is missing or misplaced
 */
export function csvCells(line: string): readonly string[] | undefined {
  if (!line.includes('"')) return line.split(',');
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
