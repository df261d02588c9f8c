// The places of strings in a request: in the path, the query and the headers, and anywhere in the
// body, including the names of members. Also builds the same request with one string spoiled by
// characters that databases, paths and indexes refuse.

import { bodySchemaOf, type OpenApiDocument, resolve, type Schema } from './document.ts';
import type { ApiRequest } from './requests.ts';

export const spoilers = ['NUL', 'half a character', 'too long'] as const;
export type Spoiler = (typeof spoilers)[number];

export type Place = {
  readonly name: string;
  readonly part: 'path' | 'query' | 'header' | 'member' | 'name of a member';
  spoiled(spoiler: Spoiler): ApiRequest;
};

/** Longer than any id, and than what an index of PostgreSQL takes. */
const tail = { NUL: '\u0000', 'half a character': '\ud800', 'too long': 'x'.repeat(5_000) };
const encodedTail = { ...tail, NUL: '%00', 'half a character': '%ed%a0%80' };
/** HTTP itself allows neither of the first two, so headers use other characters. */
const headerTail = { ...tail, NUL: '\u0001', 'half a character': '\u00ed\u00a0\u0080' };

/** Each spoiled string begins with its original value, so that a prefix check would accept it. */
export function placesOf(request: ApiRequest): readonly Place[] {
  const { path, query, headers, body } = request;
  return [
    ...Object.entries(path).map(
      ([name, value]): Place => ({
        ...{ name, part: 'path' },
        spoiled: (how) => ({ ...request, path: { ...path, [name]: value + encodedTail[how] } }),
      }),
    ),
    ...query.map(
      ([name, value], index): Place => ({
        ...{ name, part: 'query' },
        spoiled: (how) => ({ ...request, query: query.with(index, [name, value + tail[how]]) }),
      }),
    ),
    ...Object.entries(headers).map(
      ([name, value]): Place => ({
        ...{ name, part: 'header' },
        spoiled: (how) => ({
          ...request,
          headers: { ...headers, [name]: value + headerTail[how] },
        }),
      }),
    ),
    ...(body !== undefined && 'json' in body ? placesIn(request, body.json) : []),
  ];
}

/** Returns strings that the body could hold but does not. Each is added in spoiled form. */
export function absentPlacesOf(document: OpenApiDocument, request: ApiRequest): readonly Place[] {
  const { body, operation } = request;
  if (body === undefined || !('json' in body)) return [];
  return absentIn(document, bodySchemaOf(operation) ?? {}, body.json).map(
    (names): Place => ({
      ...{ name: names.join('.'), part: 'member' },
      spoiled: (how) => ({ ...request, body: { json: added(body.json, names, `x${tail[how]}`) } }),
    }),
  );
}

/** Returns the names on the way to each absent string. The item of an array is `0`. */
function absentIn(
  document: OpenApiDocument,
  schema: Schema,
  json: unknown,
): readonly (readonly string[])[] {
  const { type, properties, items, anyOf, oneOf } = resolve(document, schema);
  if (type === 'string') return json === undefined ? [[]] : [];
  const below = (name: string, member: Schema, value: unknown) =>
    absentIn(document, member, value).map((names) => [name, ...names]);
  if (type === 'array') {
    const [first] = Array.isArray(json) ? (json as unknown[]) : [];
    return below('0', (items ?? {}) as Schema, first);
  }
  const alternatives = (anyOf ?? oneOf ?? []) as readonly Schema[];
  return [
    ...alternatives
      .filter((alternative) => isOfKind(document, alternative, json))
      .flatMap((alternative) => absentIn(document, alternative, json)),
    ...Object.entries((properties ?? {}) as Record<string, Schema>).flatMap(([name, member]) =>
      below(name, member, (json as Readonly<Record<string, unknown>> | undefined)?.[name]),
    ),
  ];
}

/**
 * For alternatives that a member distinguishes, reports whether the alternative is the one that the
 * member names. Members of the other alternatives do not apply.
 */
function isOfKind(document: OpenApiDocument, alternative: Schema, json: unknown): boolean {
  const { properties } = resolve(document, alternative);
  const value = (json ?? {}) as Readonly<Record<string, unknown>>;
  return Object.entries((properties ?? {}) as Record<string, Schema>).every(
    ([name, member]) =>
      member['const'] === undefined || value[name] === undefined || value[name] === member['const'],
  );
}

function added(json: unknown, [name, ...rest]: readonly string[], value: unknown): unknown {
  if (name === undefined) return value;
  if (name === '0') {
    const items = Array.isArray(json) ? (json as unknown[]) : [];
    return [added(items[0], rest, value), ...items.slice(1)];
  }
  const record = (json ?? {}) as Readonly<Record<string, unknown>>;
  return { ...record, [name]: added(record[name], rest, value) };
}

function placesIn(request: ApiRequest, json: unknown): readonly Place[] {
  const withJson = (changed: unknown): ApiRequest => ({ ...request, body: { json: changed } });
  return pathsIn(json).flatMap((names): readonly Place[] => {
    const value = names.reduce<unknown>((at, name) => (at as Record<string, unknown>)[name], json);
    const name = names.join('.');
    if (typeof value === 'string') {
      const spoiled = (how: Spoiler) => withJson(replaced(json, names, value + tail[how]));
      return [{ name, part: 'member', spoiled }];
    }
    if (Array.isArray(value) || typeof value !== 'object' || value === null) return [];
    const spoiled = (how: Spoiler) =>
      withJson(replaced(json, names, { ...value, [`a${tail[how]}`]: 'x' }));
    return [{ name, part: 'name of a member', spoiled }];
  });
}

/** Returns the path to each part of the value, including the value itself. */
function pathsIn(json: unknown): readonly (readonly string[])[] {
  if (typeof json !== 'object' || json === null) return [[]];
  const below = Object.entries(json).flatMap(([name, child]) =>
    pathsIn(child).map((names) => [name, ...names]),
  );
  return [[], ...below];
}

function replaced(json: unknown, [name, ...rest]: readonly string[], value: unknown): unknown {
  if (name === undefined) return value;
  if (Array.isArray(json))
    return json.with(Number(name), replaced(json[Number(name)], rest, value));
  const record = json as Readonly<Record<string, unknown>>;
  return { ...record, [name]: replaced(record[name], rest, value) };
}
