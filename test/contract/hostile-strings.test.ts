// Spoils every string of every operation, one after the other, with values that databases refuse: a
// NUL, half a character, more than an index holds. None of them gets past the edge.

import { describe, expect, test } from 'vitest';
import { databaseKinds } from '../support/databases.ts';
import { forSuite } from '../support/opened.ts';
import { answerCheckFor } from './answers.ts';
import { bodySchemaOf, examplesOf, type Operation } from './document.ts';
import { type Gateway, plainRequest, startGateway } from './gateway.ts';
import { absentPlacesOf, type Place, placesOf, type Spoiler, spoilers } from './places.ts';
import type { ApiRequest } from './requests.ts';

describe.each(databaseKinds)('hostile strings on %s', { timeout: 120_000 }, (kind) => {
  const gateway = forSuite(() => startGateway(kind));

  /**
   * Builds requests with each documented body, and with every parameter, including the optional
   * ones.
   */
  const requestsTo = (operation: Operation): readonly ApiRequest[] => {
    const examples = examplesOf(gateway.document, bodySchemaOf(operation));
    const bodies = examples.length === 0 ? [undefined] : examples;
    return bodies.map((body) => withOptional(plainRequest(operation, gateway.own, { body })));
  };
  const withOptional = (request: ApiRequest): ApiRequest => {
    const optional = (where: string): [string, string][] =>
      request.operation.parameters
        .filter(({ in: place, required }) => place === where && required !== true)
        .map(({ name, schema }) => [name, optionalValue(name, schema, gateway)]);
    return {
      ...request,
      query: [...request.query, ...optional('query')],
      headers: { ...request.headers, ...Object.fromEntries(optional('header')) },
    };
  };

  const everyPlaceOf = (request: ApiRequest): readonly Place[] => [
    ...placesOf(request),
    ...absentPlacesOf(gateway.document, request),
  ];

  test.each(spoilers)('%s in any string is refused as the document says', async (spoiler) => {
    const check = answerCheckFor(gateway.document);
    const wrong: unknown[] = [];
    let sent = 0;
    for (const operation of gateway.operations) {
      for (const place of requestsTo(operation).flatMap(everyPlaceOf)) {
        const request = place.spoiled(spoiler);
        const answer = await gateway.send(request);
        sent += 1;
        const problems = check(operation, answer, refusalsOf(place));
        const taken = answer.status < 400 && mustBeRefused(place, spoiler);
        if (problems.length > 0 || taken) {
          wrong.push([operation.operationId, place.part, place.name, answer.status, ...problems]);
        }
      }
    }

    expect(wrong).toEqual([]);
    expect(sent).toBeGreaterThan(300);
  });
});

/**
 * Returns a value that the parameter accepts, so that the request is not refused for a missing
 * value.
 */
function optionalValue(
  name: string,
  schema: Readonly<Record<string, unknown>>,
  { own }: Gateway,
): string {
  const [first] = (schema['enum'] ?? schema['examples'] ?? []) as readonly string[];
  return own[name]?.[0] ?? first ?? 'x';
}

/** A spoiled path may not be a valid URL, or may belong to no route. */
function refusalsOf({ part }: Place): readonly number[] {
  return part === 'path' ? [400, 404] : [];
}

/**
 * Some bodies ignore unknown members, and some places accept long texts and names. Headers are only
 * compared.
 */
function mustBeRefused({ part }: Place, spoiler: Spoiler): boolean {
  if (part === 'header' || part === 'name of a member') return false;
  return spoiler !== 'too long' || part === 'path';
}
