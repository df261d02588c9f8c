// Requests out of the OpenAPI document: about half are as it asks, the others have one to three things wrong with them.

import fc from 'fast-check';
import { type AuthState, authStates } from './credentials.ts';
import {
  bodySchemaOf,
  type OpenApiDocument,
  type Operation,
  type Parameter,
  resolve,
} from './document.ts';
import { hostileStrings, hostileValues, valueFor } from './values.ts';

export type Body =
  | { readonly json: unknown }
  | { readonly raw: string; readonly encoding: 'utf8' | 'latin1' | 'utf16le' };

/** Plain data, so that a counterexample reads as the request that it is. */
export type ApiRequest = {
  readonly operation: Operation;
  readonly auth: AuthState;
  /** As they stand in the path: encoded, or hostile. */
  readonly path: Readonly<Record<string, string>>;
  readonly query: readonly (readonly [name: string, value: string])[];
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Body | undefined;
  readonly changes: readonly Change[];
};

/** Values that exist, by the name of the parameter or member that takes them. */
export type Pools = Readonly<Record<string, readonly [string, ...string[]]>>;

export function requestsTo(
  document: OpenApiDocument,
  operation: Operation,
  pools: Pools,
): fc.Arbitrary<ApiRequest> {
  const parameters = (where: Parameter['in']) =>
    operation.parameters.filter((parameter) => parameter.in === where);
  const asked = fc.record({
    operation: fc.constant({ ...operation, toString: () => operation.operationId }),
    auth: fc.oneof(
      { weight: 8, arbitrary: fc.constant('valid' as const) },
      { weight: 2, arbitrary: fc.constantFrom(...authStates) },
    ),
    path: textsOf(document, parameters('path'), pools).map((texts) =>
      mapValues(texts, encodedAsFarAsPossible),
    ),
    query: textsOf(document, parameters('query'), pools).map((texts) => Object.entries(texts)),
    headers: textsOf(document, parameters('header'), pools),
    body: bodyOf(document, operation, pools),
  });
  const changes = fc.oneof(
    fc.constant([]),
    fc.array(changeArbitrary, { minLength: 1, maxLength: 3 }),
  );
  return fc
    .tuple(asked, changes)
    .map(([request, list]) => list.reduce(change, { ...request, changes: list }));
}

function textsOf(
  document: OpenApiDocument,
  parameters: readonly Parameter[],
  pools: Pools,
): fc.Arbitrary<Record<string, string>> {
  const texts = Object.fromEntries(
    parameters.map(({ name, schema }) => [
      name,
      (fromPool(pools, name) ?? valueFor(document, schema)).map((value) =>
        typeof value === 'object' ? JSON.stringify(value) : String(value),
      ),
    ]),
  );
  const requiredKeys = parameters.filter(({ required }) => required).map(({ name }) => name);
  const required = Object.fromEntries(
    Object.entries(texts).filter(([name]) => requiredKeys.includes(name)),
  );
  // With everything that is optional few requests make sense.
  return fc.oneof(
    fc.record(required, { noNullPrototype: true }),
    fc.record(texts, { requiredKeys, noNullPrototype: true }),
  );
}

function fromPool(pools: Pools, name: string): fc.Arbitrary<unknown> | undefined {
  const pool = pools[name];
  return pool === undefined ? undefined : fc.constantFrom(...pool);
}

function bodyOf(
  document: OpenApiDocument,
  operation: Operation,
  pools: Pools,
): fc.Arbitrary<Body | undefined> {
  const schema = bodySchemaOf(operation);
  if (schema === undefined) return fc.constant(undefined);
  const value = valueFor(document, resolve(document, schema));
  const json = fc
    .tuple(value, fc.nat())
    .map(([made, choice]) => ({ json: pooled(made, pools, choice) }));
  return operation.method === 'get' ? fc.oneof(fc.constant(undefined), json) : json;
}

/** The value with every member that has a pool taken from it. */
export function pooled(value: unknown, pools: Pools, choice: number): unknown {
  if (Array.isArray(value)) return value.map((item) => pooled(item, pools, choice));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => {
      const pool =
        typeof member === 'string' && Object.hasOwn(pools, name) ? pools[name] : undefined;
      return [name, pool?.[choice % pool.length] ?? pooled(member, pools, choice)];
    }),
  );
}

// ── What is wrong ────────────────────────────────────────────────────────────────────────────────────────────────────

type Change =
  | { readonly at: 'member'; readonly which: number; readonly value: unknown }
  | { readonly at: 'missing member'; readonly which: number }
  | { readonly at: 'extra member'; readonly name: string; readonly value: unknown }
  | { readonly at: 'body'; readonly body: Body | undefined }
  | { readonly at: 'content type'; readonly headers: Readonly<Record<string, string>> }
  | { readonly at: 'path'; readonly which: number; readonly segment: string }
  | { readonly at: 'query'; readonly which: number; readonly value: string }
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

/** What a header may hold at all. */
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

const changeArbitrary: fc.Arbitrary<Change> = fc.oneof(
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
  fc.record({ at: fc.constant('extra query' as const), name: memberNames, value: hostileStrings }),
  fc.record({ at: fc.constant('repeated query' as const), which }),
  fc.record({ at: fc.constant('header' as const), which, value: headerValues }),
);

function change(request: ApiRequest, wrong: Change): ApiRequest {
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
      const changed = withNth(Object.fromEntries(query), wrong.which, wrong.value);
      return { ...request, query: Object.entries(changed) };
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

/** The nth member, counted through the whole of a JSON body, replaced; or removed where the value is undefined. */
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
  // An own member, also where it is called `__proto__`.
  return { json: Object.fromEntries([...Object.entries(body.json), [name, value]]) };
}

/** Halves of surrogate pairs have no UTF-8. */
function encodedAsFarAsPossible(text: string): string {
  return encodeURIComponent(Buffer.from(text, 'utf8').toString('utf8'));
}

function mapValues(
  record: Readonly<Record<string, string>>,
  map: (value: string) => string,
): Record<string, string> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, map(value)]));
}
