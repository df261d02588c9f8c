// Generates requests from the OpenAPI document. About half are valid, and the others have one to
// three mistakes.

import fc from 'fast-check';
import { makeWav, sine } from '../support/wav.ts';
import { type Change, changed, changes, encodedAsFarAsPossible } from './changes.ts';
import { type AuthState, authStates } from './credentials.ts';
import {
  bodySchemaOf,
  bodyTypeOf,
  type OpenApiDocument,
  type Operation,
  type Parameter,
  resolve,
} from './document.ts';
import { valueFor } from './values.ts';

export type Body =
  | { readonly json: unknown }
  | { readonly raw: string; readonly encoding: 'utf8' | 'latin1' | 'utf16le' };

/** Plain data, so that a printed counterexample reads like the request. */
export type ApiRequest = {
  readonly operation: Operation;
  readonly auth: AuthState;
  /** Path segments as they are sent: encoded, or hostile. */
  readonly path: Readonly<Record<string, string>>;
  readonly query: readonly (readonly [name: string, value: string])[];
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Body | undefined;
  readonly changes: readonly Change[];
};

/** Existing values, by the name of the parameter or member that takes them. */
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
  const wrong = fc.oneof(fc.constant([]), fc.array(changes, { minLength: 1, maxLength: 3 }));
  return fc
    .tuple(asked, wrong)
    .map(([request, list]) => list.reduce(changed, { ...request, changes: list }));
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
        typeof value === 'string' ? value : JSON.stringify(value),
      ),
    ]),
  );
  const requiredKeys = parameters.filter(({ required }) => required).map(({ name }) => name);
  const required = Object.fromEntries(
    Object.entries(texts).filter(([name]) => requiredKeys.includes(name)),
  );
  // Few requests with all optional members make sense.
  return fc.oneof(
    fc.record(required, { noNullPrototype: true }),
    fc.record(texts, { requiredKeys, noNullPrototype: true }),
  );
}

/**
 * Returns the body of an upload.
 *
 * @returns undefined if the operation takes JSON, or no body
 */
export function uploadFor(operation: Operation, pools: Pools): Body | undefined {
  switch (bodyTypeOf(operation)) {
    case 'audio/wav':
      return {
        raw: makeWav({ samples: [sine(1_000, 8_000, 10)] }).toString('latin1'),
        encoding: 'latin1',
      };
    case 'application/x-ndjson': {
      const lines = (pools['number'] ?? []).map((number) =>
        JSON.stringify({ number, reason: 'complaint', source: 'import' }),
      );
      return { raw: lines.join('\n'), encoding: 'utf8' };
    }
    default:
      return undefined;
  }
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
  const upload = uploadFor(operation, pools);
  if (upload !== undefined) return fc.constant(upload);
  if (schema === undefined) return fc.constant(undefined);
  const value = valueFor(document, resolve(document, schema));
  const json = fc
    .tuple(value, fc.nat())
    .map(([made, choice]) => ({ json: pooled(made, pools, choice) }));
  return operation.method === 'get' ? fc.oneof(fc.constant(undefined), json) : json;
}

/** Returns the value with each member replaced from its pool, if it has one. */
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

function mapValues(
  record: Readonly<Record<string, string>>,
  map: (value: string) => string,
): Record<string, string> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, map(value)]));
}
