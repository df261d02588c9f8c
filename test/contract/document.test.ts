// The OpenAPI document of the whole service: well-formed, complete, and in agreement with the
// routes.

import { createConfig, lintFromString } from '@redocly/openapi-core';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { beforeAll, describe, expect, test } from 'vitest';
import packageFile from '../../package.json' with { type: 'json' };
import { type Rig, startRig } from '../companion/support.ts';
import { forSuite } from '../support/opened.ts';
import {
  allOperationsOf,
  bodySchemaOf,
  examplesOf,
  type Operation,
  operationsOf,
  readDocument,
  type Schema,
} from './document.ts';
import { openApiShape } from './openapi-shape.ts';

let operations: readonly Operation[];
const rig = forSuite(() => startRig('postgres'));
const document = forSuite(() => readDocument(rig.server));
beforeAll(async () => {
  operations = operationsOf(document);
});

/** These routes are for the operators of the service, not for its users. */
const undocumented = ['/', '/asyncapi.json', '/live', '/metrics', '/openapi.json', '/ready'];

function everyNode(value: unknown, visit: (node: Record<string, unknown>) => void): void {
  if (typeof value !== 'object' || value === null) return;
  visit(value as Record<string, unknown>);
  for (const child of Object.values(value)) everyNode(child, visit);
}

describe('the OpenAPI document', () => {
  test('is OpenAPI 3.1', () => {
    const ajv = new Ajv2020({ strict: false, allErrors: true });
    const isValid = ajv.validate(openApiShape, document);

    expect(ajv.errors ?? []).toEqual([]);
    expect(isValid).toBe(true);
  });

  test('passes the recommended rules of Redocly, without a warning', async () => {
    const problems = await lintFromString({
      source: JSON.stringify(document),
      config: await createConfig({
        extends: ['recommended'],
        // Applies to tests only: without PUBLIC_URL, the document has a relative server URL.
        rules: { 'no-server-example.com': 'off' },
      }),
    });
    const told = problems.map(
      ({ ruleId, message, location: [place] }) => `${ruleId} at ${place?.pointer}: ${message}`,
    );

    expect(told).toEqual([]);
  });

  test('has schemas that are JSON Schema 2020-12', () => {
    const ajv = new Ajv2020({ strict: false, allErrors: true });
    addFormats.default(ajv);
    const wrong: unknown[] = [];
    everyNode({ paths: document.paths, components: document.components }, ({ schema }) => {
      if (schema !== undefined && ajv.validateSchema(schema as object) !== true)
        wrong.push(ajv.errors);
    });
    for (const schema of Object.values(document.components.schemas)) {
      if (ajv.validateSchema(schema) !== true) wrong.push(ajv.errors);
    }

    expect(wrong).toEqual([]);
  });

  test('has no dangling reference and no unused component', () => {
    const references = new Set<unknown>();
    everyNode(document, ({ $ref }) => {
      if (typeof $ref === 'string') references.add($ref);
    });
    const names = Object.keys(document.components.schemas);

    expect(references).toEqual(new Set(names.map((name) => `#/components/schemas/${name}`)));
  });

  test('names each operation once, with a described tag', () => {
    const ids = [
      ...allOperationsOf(document),
      ...Object.values(document.webhooks).map(({ post }) => post),
    ].map(({ operationId }) => operationId);
    const tags = new Set(document.tags.map(({ name }) => name));
    const all = allOperationsOf(document);

    expect(new Set(ids).size).toBe(ids.length);
    expect(all.filter(({ tags: [tag = ''] = [] }) => !tags.has(tag))).toEqual([]);
    expect([...tags].filter((tag) => !all.some((each) => each.tags?.[0] === tag))).toEqual([]);
  });

  test('declares each path parameter once, for the paths that have it', () => {
    for (const { path, parameters } of allOperationsOf(document)) {
      const placed = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]);
      const declared = parameters.filter((each) => each.in === 'path').map(({ name }) => name);
      expect(declared).toHaveLength(placed.length);
      expect(new Set(declared)).toEqual(new Set(placed));
    }
  });

  test('declares errors as problems, and describes each answer', () => {
    for (const { operationId, responses } of operations) {
      for (const [status, { description, content = {} }] of Object.entries(responses)) {
        expect([operationId, description]).not.toEqual([operationId, 'Default Response']);
        if (Number(status) < 400) continue;
        expect([operationId, status, Object.keys(content)]).toEqual([
          operationId,
          status,
          ['application/problem+json'],
        ]);
      }
    }
  });

  test('has the licence of the package', () => {
    expect(document.info.license.identifier).toBe(packageFile.license);
  });

  test('shows an example of every body that matches its schema', () => {
    const ajv = new Ajv2020({ strict: false, allErrors: true });
    addFormats.default(ajv);
    ajv.addSchema(document as object, 'openapi');
    const wrong: unknown[] = [];
    const names = Object.keys(document.components.schemas);
    for (const name of names) {
      const validate = ajv.compile({ $ref: `openapi#/components/schemas/${name}` });
      for (const example of examplesOf(document, document.components.schemas[name])) {
        if (!validate(example)) wrong.push([name, ajv.errorsText(validate.errors)]);
      }
    }
    const without = operations.flatMap((operation) => {
      const bodies: [string, Schema | undefined][] = [
        ['request', bodySchemaOf(operation)],
        [
          'answer',
          (operation.responses['200'] ?? operation.responses['202'])?.content?.['application/json']
            ?.schema,
        ],
      ];
      return bodies
        .filter(([, schema]) => schema !== undefined && examplesOf(document, schema).length === 0)
        .map(([body]) => `${operation.operationId} ${body}`);
    });

    expect(wrong).toEqual([]);
    expect(without).toEqual([]);
  });
});

describe('the routes', () => {
  test('are exactly those of the document', () => {
    const documented = allOperationsOf(document).map(
      ({ method, path }) => `${method.toUpperCase()} ${path}`,
    );
    const registered = routesOf(rig).filter(
      (route) => !/^\S+ \/docs/.test(route) && !undocumented.includes(route.replace(/^\S+ /, '')),
    );

    expect(registered.sort()).toEqual(documented.sort());
  });
});

/** Fastify prints its routes as a tree of path segments with their methods. */
function routesOf({ server }: Rig): readonly string[] {
  const parents: string[] = [];
  return server
    .printRoutes({ commonPrefix: false })
    .split('\n')
    .flatMap((line) => {
      const [, indent = '', segment = '', methods = ''] =
        /^([│ ]*)[├└]── (\S+)(?: \((.*)\))?/.exec(line) ?? [];
      if (segment === '') return [];
      const depth = indent.length / 4;
      parents.splice(depth, Number.POSITIVE_INFINITY, segment);
      const path = parents.join('').replaceAll(/:(\w+)/g, '{$1}');
      return methods
        .split(', ')
        .filter((method) => method !== '' && method !== 'HEAD')
        .map((method) => `${method} ${path}`);
    });
}
