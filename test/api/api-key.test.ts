// Endpoints for which the specification requires an API key: only the header `x-api-key` counts.

import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { RegisterRoutes } from '../../src/api/server.ts';
import { forSuite } from '../support/opened.ts';
import { type ProblemDocument, startHarness, token } from './support.ts';

/** Registers a route as an area of the companion does. */
const keyed: RegisterRoutes = (server, clients) => {
  server.route({
    method: 'GET',
    url: '/keyed',
    onRequest: clients.require({ scope: 'Dialout', scheme: 'apiKey' }),
    schema: { response: { 200: z.object({ appId: z.string() }) } },
    handler: (request) => ({ appId: clients.appOf(request).appId }),
  });
};

const harness = forSuite(() => startHarness({}, [keyed]));

async function answerTo(headers: Readonly<Record<string, string>>, url = '/keyed') {
  const response = await harness.server.inject({ method: 'GET', url, headers });
  return { status: response.statusCode, response, problem: response.json<ProblemDocument>() };
}

describe('an endpoint of API keys', () => {
  test('identifies the app by its key', async () => {
    const { status, response } = await answerTo({ 'x-api-key': 'ofk_of-app-1' });

    expect(status).toBe(200);
    expect(response.json()).toEqual({ appId: 'app-1' });
  });

  test.each<[string, Record<string, string>, RegExp]>([
    ['no key', {}, /Send an API key in the `x-api-key` header/],
    ['an empty key', { 'x-api-key': ' ' }, /Send an API key/],
    ['an unknown key', { 'x-api-key': 'ofk_of-nobody' }, /does not belong to a registered app/],
    ['a key in the header of tokens', { auth: 'ofk_of-app-1' }, /Send an API key/],
    ['a key as Authorization', { authorization: 'Bearer ofk_of-app-1' }, /Send an API key/],
    ['a property that every object has', { 'x-api-key': '__proto__' }, /does not belong to/],
  ])('answers %s with a 401 that names the reason', async (_name, headers, reason) => {
    const { status, problem, response } = await answerTo(headers);

    expect(status).toBe(401);
    expect(problem.detail).toMatch(reason);
    expect(response.headers['www-authenticate']).toBe('ApiKey realm="offhook"');
  });

  test('refuses every token', async () => {
    expect((await answerTo({ auth: await token() })).status).toBe(401);
    expect((await answerTo({ 'x-api-key': await token() })).status).toBe(401);
  });

  test('requires the scope', async () => {
    const { status, problem } = await answerTo({ 'x-api-key': 'ofk_without-scope' });

    expect(status).toBe(403);
    expect(problem.detail).toContain('"Dialout"');
  });
});

describe('an endpoint of tokens', () => {
  const calls = '/api/public/bot/st-1/calls';

  test('refuses an API key in any header', async () => {
    for (const headers of [{ 'x-api-key': 'ofk_of-app-1' }, { auth: 'ofk_of-app-1' }]) {
      const { status, response } = await answerTo(headers, calls);
      expect(status).toBe(401);
      expect(response.headers['www-authenticate']).toBe('Bearer realm="offhook"');
    }
  });

  test('accepts a key beside the token', async () => {
    const headers = { auth: await token(), 'x-api-key': 'nonsense' };

    expect((await answerTo(headers, calls)).status).toBe(200);
  });
});
