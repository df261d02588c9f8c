// Requests made up from the OpenAPI document, valid and hostile, with credentials in every state: each answer is one that
// the document describes, and none is a 500.
//
// A failure prints the seed and the shrunk request. CONTRACT_REQUESTS=100000 looks longer (on each database), and
// CONTRACT_SEED=… elsewhere.

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
/** Headers are 16 KiB at most, together with the path. */
const longestRead = 14_000;
/** A hundredth of a second each, and room for two busy cores. */
const timeout = 60_000 + requests * 50;

describe.each(databaseKinds)('made-up requests on %s', { timeout }, (kind) => {
  const gateway = forSuite(() => startGateway(kind));

  test('are answered as the document says', async () => {
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

/** What no operation is asked: a path that was changed may be of no route or of no URL, and a long one is not read at all. */
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
  // Whether an answer is wanted at all is asked before who wants it.
  const unwanted = changes.some(({ at }) => at === 'header') ? [406] : [];
  const refusals = isBad ? [401] : [403, 404];
  expect([...refusals, ...unwanted, ...besides(request)]).toContain(status);
}
