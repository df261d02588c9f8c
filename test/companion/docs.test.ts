// /docs with every area. It omits what would keep a browser from sending a request.

import { expect, test } from 'vitest';
import { forSuite } from '../support/opened.ts';
import { startRig } from './support.ts';

type Parameter = { name: string; in: string; schema: { pattern?: string } };
type Operation = { operationId: string; parameters?: Parameter[]; requestBody?: unknown };
type Document = { paths: Record<string, Record<string, Operation>> };

const rig = forSuite(() => startRig('pglite'));

async function operationsOf(address: string): Promise<readonly (Operation & { method: string })[]> {
  const { paths } = (await rig.server.inject(address)).json<Document>();
  return Object.values(paths).flatMap((methods) =>
    Object.entries(methods).map(([method, operation]) => ({ ...operation, method })),
  );
}

function namesOf({ parameters = [] }: Operation): readonly string[] {
  return parameters.map(({ name, in: place }) => `${place} ${name}`);
}

test('/docs has every operation, with the parameters that a person fills in', async () => {
  const described = await operationsOf('/openapi.json');
  const shown = await operationsOf('/docs/json');

  expect(shown.map((operation) => [operation.operationId, namesOf(operation)])).toEqual(
    described.map((operation) => [
      operation.operationId,
      namesOf(operation).filter((name) => name !== 'header accept'),
    ]),
  );
});

test('/docs has bodies for every method except GET, for which browsers send none', async () => {
  const withBody = (operations: readonly (Operation & { method: string })[]) =>
    operations.filter(({ requestBody }) => requestBody !== undefined);
  const described = withBody(await operationsOf('/openapi.json'));

  expect(described.some(({ method }) => method === 'get')).toBe(true);
  expect(withBody(await operationsOf('/docs/json')).map(({ operationId }) => operationId)).toEqual(
    described.filter(({ method }) => method !== 'get').map(({ operationId }) => operationId),
  );
});

test('/docs has no pattern that has another meaning in the page', async () => {
  const patterns = (await operationsOf('/docs/json')).flatMap(({ parameters = [] }) =>
    parameters.flatMap(({ schema }) => schema.pattern ?? []),
  );

  expect(patterns.length).toBeGreaterThan(0);
  // Without the flag `u`, these match a set of letters.
  expect(patterns.filter((pattern) => /\\[pP]\{/.test(pattern))).toEqual([]);
});
