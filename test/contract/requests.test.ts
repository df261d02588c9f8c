// Generates requests from the OpenAPI document, valid and hostile, with credentials in every state.
// The document must describe each answer, and no answer may be a 500. A failure prints the seed and
// the shrunk request. CONTRACT_REQUESTS=100000 runs longer (on each database), and CONTRACT_SEED=…
// runs elsewhere.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { databaseKinds } from '../support/databases.ts';
import { forSuite } from '../support/opened.ts';
import { answerCheckFor } from './answers.ts';
import { written } from './client.ts';
import { badStates } from './credentials.ts';
import { credentialsHeader } from './document.ts';
import { startGateway } from './gateway.ts';
import { type ApiRequest, requestsTo } from './requests.ts';

const requests = Number(process.env['CONTRACT_REQUESTS'] ?? 2_500);
const seed = Number(process.env['CONTRACT_SEED'] ?? 20_261_120);
/** Headers and the path may have 16 KiB together. */
const longestRead = 14_000;
/** A request takes a hundredth of a second. The rest is room for two busy cores. */
const timeout = 60_000 + requests * 50;

describe.each(databaseKinds)('generated requests on %s', { timeout }, (kind) => {
  const gateway = forSuite(() => startGateway(kind));

  test('get answers that the document describes', async () => {
    const { document, operations, own } = gateway;
    const check = answerCheckFor(document);
    const succeeded = new Map(operations.map(({ operationId }) => [operationId, 0]));
    const anyRequest = fc.oneof(
      ...operations.map((operation) => requestsTo(document, operation, own)),
    );

    await fc.assert(
      fc.asyncProperty(anyRequest, async (request) => {
        const answer = await gateway.send(request);
        const { operationId } = request.operation;
        if (answer.status < 300) succeeded.set(operationId, (succeeded.get(operationId) ?? 0) + 1);
        expect(check(request.operation, answer, besides(request))).toEqual([]);
        const isOpen = credentialsHeader(document, request.operation) === undefined;
        if (!isOpen) expectAuthorized(request, answer.status);
      }),
      { numRuns: requests, seed, endOnFailure: false },
    );

    const neverSucceeded = [...succeeded].filter(([, times]) => times === 0).map(([id]) => id);
    expect(neverSucceeded).toEqual([]);
  });
});

/**
 * Returns statuses that are right for no particular operation: a changed path may belong to no
 * route or be no valid URL, and the server does not read a long one at all.
 */
function besides(request: ApiRequest): readonly number[] {
  const { path } = written(request);
  return [
    ...(request.changes.some(({ at }) => at === 'path' || at === 'any string')
      ? [400, 404, 405]
      : []),
    ...(path.length > longestRead ? [431] : []),
  ];
}

function expectAuthorized(request: ApiRequest, status: number): void {
  const { auth, changes } = request;
  const isBad = (badStates as readonly string[]).includes(auth);
  if (!isBad && auth !== 'without scope') return;
  // The gateway checks whether it can produce an acceptable answer before it checks the
  // credentials.
  const unwanted = changes.some(({ at }) => at === 'header') ? [406] : [];
  const refusals = isBad ? [401] : [403, 404];
  expect([...refusals, ...unwanted, ...besides(request)]).toContain(status);
}
