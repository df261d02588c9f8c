// Mistakes of a hostile or careless client, as changes to a valid request.

import fc from 'fast-check';
import { placesOf, type Spoiler, spoilers } from './places.ts';
import type { ApiRequest, Body } from './requests.ts';
import { hostileStrings, hostileValues } from './values.ts';

export type Change =
  | { readonly at: 'member'; readonly which: number; readonly value: unknown }
  | { readonly at: 'missing member'; readonly which: number }
  | { readonly at: 'extra member'; readonly name: string; readonly value: unknown }
  | { readonly at: 'body'; readonly body: Body | undefined }
  | { readonly at: 'content type'; readonly headers: Readonly<Record<string, string>> }
  | { readonly at: 'path'; readonly which: number; readonly segment: string }
  | { readonly at: 'query'; readonly which: number; readonly value: string }
  | { readonly at: 'any string'; readonly which: number; readonly spoiler: Spoiler }
  | { readonly at: 'extra query'; readonly name: string; readonly value: string }
  | { readonly at: 'repeated query'; readonly which: number }
  | { readonly at: 'header'; readonly which: number; readonly value: string };

const which = fc.nat({ max: 1_000 });
const memberNames = fc.oneof(
  fc.constantFrom(
    '__proto__',
    'constructor',
    'prototype',
    'toString',
    'length',
    '$where',
    'Limit',
    'user_id',
    '',
    'a.b',
  ),
  hostileStrings,
);

const rawBodies: fc.Arbitrary<Body | undefined> = fc.oneof(
  fc.constantFrom<Body | undefined>(
    undefined,
    ...[
      '',
      ' ',
      'null',
      '[]',
      '{}',
      '"text"',
      '0',
      'tru',
      '{',
      '{"a":1',
      "{'a':1}",
      '{"a":1}{"b":2}',
      '{"a":1,"a":2}',
      '{"__proto__":{"x":1}}',
      '{"constructor":{"prototype":{}}}',
      '\ufeff{}',
      '{"a":1e999}',
      '{"a":"\\ud800"}',
      '{"a":"\\u0000"}',
      '[1,]',
      'a=b&c=d',
      '<a/>',
      '--x\r\n',
    ].map((raw) => ({ raw, encoding: 'utf8' as const })),
    { raw: '{"a":"ü"}', encoding: 'latin1' },
    { raw: '{"a":1}', encoding: 'utf16le' },
    { raw: '['.repeat(5_000) + ']'.repeat(5_000), encoding: 'utf8' },
    { raw: `{"data":${'{"a":'.repeat(2_000)}1${'}'.repeat(2_000)}}`, encoding: 'utf8' },
    { raw: JSON.stringify({ data: 'x'.repeat(200_000) }), encoding: 'utf8' },
    { raw: JSON.stringify({ data: 'x'.repeat(300_000) }), encoding: 'utf8' },
  ),
  hostileValues.map((json) => ({ json })),
);

const wrongTypes = fc.constantFrom<Readonly<Record<string, string>>>(
  { 'content-type': '' },
  { 'content-type': 'text/plain' },
  { 'content-type': 'application/xml' },
  { 'content-type': 'application/x-www-form-urlencoded' },
  { 'content-type': 'multipart/form-data; boundary=x' },
  { 'content-type': 'application/json; charset=utf-16' },
  { 'content-type': 'application/jsonp' },
  { 'content-type': 'APPLICATION/JSON' },
  { 'content-type': 'application/json;;;' },
  { 'content-encoding': 'gzip' },
  { 'content-encoding': 'identity' },
  { 'content-encoding': 'br, gzip' },
);

const segments = fc.oneof(
  fc.constantFrom(
    '..',
    '.',
    '%2e%2e',
    '..%2f..%2fetc',
    '%00',
    '%ff',
    '%',
    '%zz',
    '%c0%af',
    '%ed%a0%80',
    ';x=1',
    '*',
    ':botId',
    'a'.repeat(128),
    'a'.repeat(129),
    'a'.repeat(5_000),
    '%F0%9F%92%A9',
    '%0d%0aSet-Cookie:x',
    'st-1%20',
    'null',
  ),
  hostileStrings.map(encodedAsFarAsPossible),
);

/** The characters that a header may contain. */
const headerValues = fc.oneof(
  fc.constantFrom(
    '',
    ' ',
    '*',
    '*/*',
    'text/html',
    'application/json;q=0',
    'application/json',
    'gzip',
    'br;q=1.0, *;q=0',
    'identity;q=0',
    'zstd',
    ',,,',
    'a'.repeat(4_000),
    '\u00e9\u00ff',
    'en',
    'x/../y',
  ),
  fc.string({ unit: 'grapheme-ascii', maxLength: 40 }),
);

export const changes: fc.Arbitrary<Change> = fc.oneof(
  ...[1, 2, 3].map(() =>
    fc.record({ at: fc.constant('member' as const), which, value: hostileValues }),
  ),
  fc.record({ at: fc.constant('missing member' as const), which }),
  fc.record({ at: fc.constant('extra member' as const), name: memberNames, value: hostileValues }),
  fc.record({ at: fc.constant('body' as const), body: rawBodies }),
  fc.record({ at: fc.constant('content type' as const), headers: wrongTypes }),
  fc.record({ at: fc.constant('path' as const), which, segment: segments }),
  ...[1, 2].map(() =>
    fc.record({ at: fc.constant('query' as const), which, value: hostileStrings }),
  ),
  ...[1, 2, 3].map(() =>
    fc.record({
      at: fc.constant('any string' as const),
      which,
      spoiler: fc.constantFrom(...spoilers),
    }),
  ),
  fc.record({ at: fc.constant('extra query' as const), name: memberNames, value: hostileStrings }),
  fc.record({ at: fc.constant('repeated query' as const), which }),
  fc.record({ at: fc.constant('header' as const), which, value: headerValues }),
);

export function changed(request: ApiRequest, wrong: Change): ApiRequest {
  const { body, path, query, headers } = request;
  switch (wrong.at) {
    case 'member':
      return { ...request, body: withMember(body, wrong.which, wrong.value) };
    case 'missing member':
      return { ...request, body: withMember(body, wrong.which, undefined) };
    case 'extra member':
      return { ...request, body: withExtra(body, wrong.name, wrong.value) };
    case 'body':
      return { ...request, body: wrong.body };
    case 'content type':
      return { ...request, headers: { ...headers, ...wrong.headers } };
    case 'path':
      return { ...request, path: withNth(path, wrong.which, wrong.segment) };
    case 'query': {
      const replaced = withNth(Object.fromEntries(query), wrong.which, wrong.value);
      return { ...request, query: Object.entries(replaced) };
    }
    case 'any string': {
      // Header characters have a change of their own.
      const places = placesOf(request).filter(({ part }) => part !== 'header');
      return places[wrong.which % places.length]?.spoiled(wrong.spoiler) ?? request;
    }
    case 'extra query':
      return { ...request, query: [...query, [wrong.name, wrong.value]] };
    case 'repeated query':
      return { ...request, query: query.flatMap((pair) => [pair, pair]) };
    case 'header':
      return {
        ...request,
        headers: withNth(
          { accept: '', 'idempotency-key': '', ...headers },
          wrong.which,
          wrong.value,
        ),
      };
  }
}

function withNth(
  record: Readonly<Record<string, string>>,
  nth: number,
  value: string,
): Record<string, string> {
  const names = Object.keys(record);
  const name = names[nth % names.length];
  return name === undefined ? { ...record } : { ...record, [name]: value };
}

/**
 * Replaces the nth member, counted through the whole JSON body, or removes it if the value is
 * undefined.
 */
function withMember(body: Body | undefined, nth: number, value: unknown): Body | undefined {
  if (body === undefined || !('json' in body)) return body;
  const json = structuredClone(body.json);
  const places: (() => void)[] = [];
  const visit = (node: unknown): void => {
    if (typeof node !== 'object' || node === null) return;
    for (const name of Object.keys(node)) {
      places.push(() => {
        if (value === undefined) Reflect.deleteProperty(node, name);
        else Reflect.set(node, name, value);
      });
      visit((node as Record<string, unknown>)[name]);
    }
  };
  visit(json);
  places[nth % places.length]?.();
  return { json };
}

function withExtra(body: Body | undefined, name: string, value: unknown): Body | undefined {
  if (body === undefined || !('json' in body)) return body;
  if (typeof body.json !== 'object' || body.json === null || Array.isArray(body.json)) return body;
  // Makes an own member, even if its name is `__proto__`.
  return { json: Object.fromEntries([...Object.entries(body.json), [name, value]]) };
}

/**
 * Half of a surrogate pair has no UTF-8 encoding. A client that sends one anyway writes the three
 * bytes that its encoding would have.
 */
export function encodedAsFarAsPossible(text: string): string {
  return text
    .split(/(\p{Cs})/u)
    .map((part) => (/^\p{Cs}$/u.test(part) ? bytesOfHalf(part) : encodeURIComponent(part)))
    .join('');
}

function bytesOfHalf(half: string): string {
  const code = half.charCodeAt(0);
  const bytes = [0xed, 0x80 | ((code >> 6) & 0x3f), 0x80 | (code & 0x3f)];
  return bytes.map((byte) => `%${byte.toString(16)}`).join('');
}
