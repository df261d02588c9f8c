// Parses a body's bytes as JSON. If a field occurs twice, the last one wins, as in JSON.parse.
// Anything else that two parsers could interpret differently is rejected.

import { jsonMistake } from './json-syntax.ts';
import { invalidRequest, ProblemError } from './problem.ts';

/**
 * JSON that systems exchange must be UTF-8 (RFC 8259 section 8.1). The decoder drops a byte order
 * mark.
 */
const utf8 = new TextDecoder('utf-8', { fatal: true });
/** Replaces invalid bytes with U+FFFD so that the error can say where they are. */
const lenientUtf8 = new TextDecoder('utf-8', { ignoreBOM: true });
const replacement = '\ufffd';
const replacementBytes = Buffer.from(replacement);

/** @throws ProblemError with a message that describes the mistake, if the body isn't acceptable */
export function parseJsonBody(bytes: Uint8Array): unknown {
  if (bytes.length === 0) {
    throw invalidBody('The body is empty: JSON is expected at line 1, column 1.');
  }
  const text = decoded(bytes);
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch (error) {
    throw invalidBody(describeMistake(text), error);
  }
  // Most bodies can't contain a forbidden name, so we don't have to walk through them.
  const path = /__proto__|constructor|\\u/.test(text) ? pathToPrototype(body) : undefined;
  if (path === undefined) return body;
  const message = 'is refused: no member may be `__proto__`, or `constructor` with a `prototype`';
  throw invalidRequest([{ path, message }]);
}

export function invalidBody(detail: string, cause?: unknown): ProblemError {
  return new ProblemError('invalid-request', detail, { cause });
}

function decoded(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch (error) {
    const at = placeIn(...firstInvalidBytes(bytes));
    throw invalidBody(`The body is not UTF-8: its first invalid byte is at ${at}.`, error);
  }
}

function describeMistake(text: string): string {
  const mistake = jsonMistake(text);
  // This only happens if `jsonMistake` and JSON.parse disagree.
  if (mistake === undefined) return 'The body is not JSON.';
  const { index, expected } = mistake;
  const at = placeIn(text, index);
  if (index === text.length) return `The body is not JSON: it ends at ${at}, where ${expected}.`;
  return `The body is not JSON: at ${at} ${expected}${foundAt(text, index)}.`;
}

/** Quotes the character at `index`. Returns '' if the reader couldn't see or recognise it. */
function foundAt(text: string, index: number): string {
  const char = String.fromCodePoint(text.codePointAt(index) ?? 0);
  return /^[!-~]$/.test(char) ? `, not \`${char}\`` : '';
}

/**
 * Returns the line and column of an index. Like editors, we count both from 1. Each character
 * counts as one column, except that a byte order mark isn't counted.
 */
function placeIn(text: string, index: number): string {
  const lines = text
    .slice(0, index)
    .replace(/^\ufeff/, '')
    .split(/\r\n|\r|\n/);
  // Without the first half of each surrogate pair, there's one code unit per character.
  const before = (lines.at(-1) ?? '').replaceAll(/[\ud800-\udbff]/g, '');
  return `line ${lines.length}, column ${before.length + 1}`;
}

/** Returns the leniently decoded text, and the index of the first invalid bytes in it. */
function firstInvalidBytes(bytes: Uint8Array): readonly [string, number] {
  const text = lenientUtf8.decode(bytes);
  let offset = 0;
  let from = 0;
  for (let index = text.indexOf(replacement); index >= 0; index = text.indexOf(replacement, from)) {
    offset += Buffer.byteLength(text.slice(from, index));
    // The body itself may legitimately contain U+FFFD.
    if (!replacementBytes.equals(bytes.subarray(offset, offset + 3))) return [text, index];
    offset += replacementBytes.length;
    from = index + 1;
  }
  return [text, text.length];
}

type Place = {
  readonly value: object;
  readonly name: string;
  readonly parent: Place | undefined;
};

/**
 * Finds a field whose name would change the prototype of an object made from the body.
 *
 * @returns the field's dotted path, or undefined if there is no such field
 */
function pathToPrototype(body: unknown): string | undefined {
  if (!isObject(body)) return undefined;
  // The list grows while we walk through it. We don't use recursion because a deeply nested body
  // could overflow the stack.
  const places: Place[] = [{ value: body, name: '', parent: undefined }];
  for (const place of places) {
    for (const [name, value] of Object.entries(place.value)) {
      if (reachesPrototype(name, value)) return pathTo(place, name);
      if (isObject(value)) places.push({ value, name, parent: place });
    }
  }
  return undefined;
}

function reachesPrototype(name: string, value: unknown): boolean {
  if (name === '__proto__') return true;
  return name === 'constructor' && isObject(value) && Object.hasOwn(value, 'prototype');
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function pathTo(place: Place, name: string): string {
  const names = [name];
  for (let at = place; at.parent !== undefined; at = at.parent) names.push(at.name);
  return names.reverse().join('.');
}
