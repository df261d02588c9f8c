// The bytes of a body as JSON. Of a member that is given twice the last one counts, as JSON.parse has it; everything else that
// two readers of the same bytes could take for two things is refused.

import { invalidRequest, ProblemError } from './problem.ts';

/** RFC 8259 section 8.1: JSON between systems is UTF-8. A mark in front is left out. */
const utf8 = new TextDecoder('utf-8', { fatal: true });

/** @throws ProblemError that says what is wrong with it. */
export function parseJsonBody(bytes: Uint8Array): unknown {
  if (bytes.length === 0) {
    throw invalidBody('The body is empty; JSON is expected.');
  }
  const text = decoded(bytes);
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch (error) {
    throw invalidBody('The body is not JSON.', error);
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
    throw invalidBody('The body is not UTF-8.', error);
  }
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
