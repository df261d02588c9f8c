// The bytes of a body as JSON. Of a member that is given twice the last one counts, as JSON.parse has it; everything else that
// two readers of the same bytes could take for two things is refused.

import { jsonMistake } from './json-syntax.ts';
import { invalidRequest, ProblemError } from './problem.ts';

/** RFC 8259 section 8.1: JSON between systems is UTF-8. A mark in front is left out. */
const utf8 = new TextDecoder('utf-8', { fatal: true });
/** What is not UTF-8 becomes U+FFFD, so that its place can be named. */
const lenientUtf8 = new TextDecoder('utf-8', { ignoreBOM: true });
const replacement = '\ufffd';
const replacementBytes = Buffer.from(replacement);

/** @throws ProblemError that says what is wrong with it. */
export function parseJsonBody(bytes: Uint8Array): unknown {
  if (bytes.length === 0) {
    throw invalidBody('The body is empty: JSON is expected at line 1, column 1.');
  }
  const text = decoded(bytes);
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch (error) {
    throw invalidBody(wordsOfMistake(text), error);
  }
  // Only these texts can hold such a name; most bodies need not be walked.
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
    const at = placeIn(...firstWrongBytes(bytes));
    throw invalidBody(`The body is not UTF-8: its first wrong byte is at ${at}.`, error);
  }
}

function wordsOfMistake(text: string): string {
  const mistake = jsonMistake(text);
  // Only if the two readers disagree.
  if (mistake === undefined) return 'The body is not JSON.';
  const { index, expected } = mistake;
  const at = placeIn(text, index);
  if (index === text.length) return `The body is not JSON: it ends at ${at}, where ${expected}.`;
  return `The body is not JSON: at ${at} ${expected}${insteadAt(text, index)}.`;
}

/** Nothing for what would not be seen, or not be known from its picture. */
function insteadAt(text: string, index: number): string {
  const char = String.fromCodePoint(text.codePointAt(index) ?? 0);
  return /^[!-~]$/.test(char) ? `, not \`${char}\`` : '';
}

/** As editors count: from 1, a column for each character, and none for a byte order mark. */
function placeIn(text: string, index: number): string {
  const lines = text
    .slice(0, index)
    .replace(/^\ufeff/, '')
    .split(/\r\n|\r|\n/);
  // The first halves of pairs: what is left is one unit for each character.
  const before = (lines.at(-1) ?? '').replaceAll(/[\ud800-\udbff]/g, '');
  return `line ${lines.length}, column ${before.length + 1}`;
}

/** The text as far as it could be read, and where the first wrong bytes are in it. */
function firstWrongBytes(bytes: Uint8Array): readonly [string, number] {
  const text = lenientUtf8.decode(bytes);
  let offset = 0;
  let from = 0;
  for (let index = text.indexOf(replacement); index >= 0; index = text.indexOf(replacement, from)) {
    offset += Buffer.byteLength(text.slice(from, index));
    // The character itself may stand in the body.
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

/** Bodies become records of ours: a member of this name would change the prototype of one. Undefined: there is none. */
function pathToPrototype(body: unknown): string | undefined {
  if (!isObject(body)) return undefined;
  // Grows while it is walked, since recursion would end at the depth that a body may have.
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
