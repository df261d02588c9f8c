// Generates values from JSON Schema for requests: values that a schema allows, and values that a
// hostile client would send instead.

import fc from 'fast-check';
import { examplesOf, type OpenApiDocument, resolve, type Schema } from './document.ts';

type Json = fc.Arbitrary<unknown>;

/** Deeper values are cut off, so that recursive schemas end. */
const deepest = 6;

export function valueFor(document: OpenApiDocument, schema: Schema, depth = 0): Json {
  const whole = resolve(document, schema);
  const fresh = depth > deepest ? fc.constant(null) : made(document, whole, depth);
  const examples = examplesOf(document, whole);
  return examples.length === 0
    ? fresh
    : fc.oneof(
        { weight: 2, arbitrary: fc.constantFrom(...examples) },
        { weight: 1, arbitrary: fresh },
      );
}

function made(document: OpenApiDocument, schema: Schema, depth: number): Json {
  if ('const' in schema) return fc.constant(schema['const']);
  if (Array.isArray(schema['enum'])) return fc.constantFrom(...(schema['enum'] as unknown[]));
  const branches = (schema['anyOf'] ?? schema['oneOf']) as readonly Schema[] | undefined;
  if (branches !== undefined) {
    return fc.oneof(...branches.map((branch) => valueFor(document, branch, depth + 1)));
  }
  const parts = schema['allOf'] as readonly Schema[] | undefined;
  if (parts !== undefined) {
    return fc
      .tuple(...parts.map((part) => valueFor(document, part, depth + 1)))
      .map((values) => Object.assign({}, ...values) as unknown);
  }
  switch (schema['type']) {
    case 'object':
      return objectOf(document, schema, depth);
    case 'array':
      return fc.array(valueFor(document, (schema['items'] ?? {}) as Schema, depth + 1), {
        minLength: (schema['minItems'] as number | undefined) ?? 0,
        maxLength: Math.min((schema['maxItems'] as number | undefined) ?? 3, 3),
      });
    case 'string':
      return stringOf(schema);
    case 'integer':
    case 'number':
      return numberOf(schema);
    case 'boolean':
      return fc.boolean();
    case 'null':
      return fc.constant(null);
    default:
      return fc.jsonValue({ maxDepth: 2 });
  }
}

function objectOf(document: OpenApiDocument, schema: Schema, depth: number): Json {
  const properties = (schema['properties'] ?? {}) as Record<string, Schema>;
  const required = (schema['required'] ?? []) as readonly string[];
  const members = Object.fromEntries(
    Object.entries(properties).map(([name, member]) => [
      name,
      valueFor(document, member, depth + 1),
    ]),
  );
  const named = fc.record(members, {
    requiredKeys: required.filter((name) => name in members),
    noNullPrototype: true,
  });
  const rest = schema['additionalProperties'];
  if (typeof rest !== 'object' || rest === null || Object.keys(properties).length > 0) return named;
  return fc.dictionary(fc.string({ minLength: 1 }), valueFor(document, rest as Schema, depth + 1), {
    maxKeys: 3,
    noNullPrototype: true,
  });
}

function stringOf(schema: Schema): Json {
  const minLength = (schema['minLength'] as number | undefined) ?? 0;
  const maxLength = Math.min((schema['maxLength'] as number | undefined) ?? 24, 64);
  const plain = fc.string({ minLength, maxLength: Math.max(minLength, maxLength) });
  switch (schema['format']) {
    case 'date-time':
      return instants.map((date) => date.toISOString());
    case 'date':
      return instants.map((date) => date.toISOString().slice(0, 10));
    case 'uuid':
      return fc.uuid();
    case 'uri':
      return fc.webUrl();
    case 'email':
      return fc.emailAddress();
    default:
      return matching(schema['pattern']) ?? plain;
  }
}

const instants = fc.date({
  min: new Date('2026-11-01T00:00:00Z'),
  max: new Date('2026-11-30T00:00:00Z'),
  noInvalidDate: true,
});

const byPattern = new Map<string, Json | undefined>();

/**
 * Keeps one generator for each pattern, because fast-check builds a table of all characters for
 * each pattern with a character class.
 */
function matching(pattern: unknown): Json | undefined {
  if (typeof pattern !== 'string') return undefined;
  if (!byPattern.has(pattern)) byPattern.set(pattern, newMatching(pattern));
  return byPattern.get(pattern);
}

/**
 * fast-check supports no look-arounds. For patterns that it refuses, examples and the pools of the
 * rig are used.
 */
function newMatching(pattern: string): Json | undefined {
  try {
    return fc.stringMatching(new RegExp(pattern, 'u'), { maxLength: 64 });
  } catch {
    return undefined;
  }
}

function numberOf(schema: Schema): Json {
  const minimum = (schema['minimum'] ?? schema['exclusiveMinimum']) as number | undefined;
  const maximum = (schema['maximum'] ?? schema['exclusiveMaximum']) as number | undefined;
  const min = Math.max(minimum ?? -1_000, -1_000_000);
  const max = Math.max(min, Math.min(maximum ?? 100_000, 1_000_000));
  return schema['type'] === 'integer'
    ? fc.integer({ min: Math.ceil(min), max: Math.floor(max) })
    : fc.double({ min, max, noNaN: true });
}

/**
 * Strings that break parsers, databases and assumptions. None is as long as a body may be: a change
 * of its own tests that.
 */
export const hostileStrings: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(
    '',
    ' ',
    '\u0000',
    'a\u0000b',
    '\ud800',
    'x\udfff',
    '\ufeff',
    '\u202e\u2066',
    '🏳️‍🌈',
    'ﷺ'.repeat(50),
    "'; drop table calls; --",
    '%s%n%x',
    '%',
    '_',
    '\\',
    '../../../etc/passwd',
    '..%2f..%2f',
    '{{7*7}}',
    '$(id)',
    '__proto__',
    'constructor',
    'toString',
    'null',
    'undefined',
    'NaN',
    'true',
    '0',
    '-1',
    '1e999',
    '9007199254740993',
    '٣',
    '2026-02-30',
    '2026-11-20T25:61:61.000Z',
    '0000-00-00',
    '+275760-09-13T00:00:00.000Z',
    'a'.repeat(129),
    'é'.repeat(1_500),
  ),
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.string({ unit: 'grapheme', maxLength: 40 }),
);

export const hostileValues: Json = fc.oneof(
  { weight: 3, arbitrary: hostileStrings },
  {
    weight: 3,
    arbitrary: fc.constantFrom<unknown>(
      null,
      true,
      false,
      0,
      -0,
      -1,
      1.5,
      2 ** 31,
      2 ** 53,
      -(2 ** 63),
      1e308,
      5e-324,
      [],
      {},
      [[]],
      [null],
      { length: 1 },
      { toString: 1 },
      { $ref: '#' },
    ),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(101, 1_001).map((length) => Array.from({ length }, () => 'x')),
  },
  { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 3 }) },
);
