import { afterEach, expect, test } from 'vitest';
import type { CallId } from '../../../src/calls/contract/identity.ts';
import { createSuppressions } from '../../../src/store/rules/suppressions.ts';
import { openTestDatabase } from '../../support/databases.ts';
import { forEachTest, forSuite } from '../../support/opened.ts';
import { app, type ProblemDocument, startHarness, token } from '../support.ts';

const appsByName = new Map(
  [
    app({ appId: 'crm', scopes: ['Calling Rules'], defaultCountry: 'US' }),
    app({ appId: 'of-another-account', accountId: 'other', scopes: ['Calling Rules'] }),
    app({ appId: 'dialer' }),
  ].map((each) => [each.appId, each]),
);

const database = forSuite(() => openTestDatabase('pglite'));
const harness = forEachTest(() =>
  startHarness({
    apps: { find: async (appId) => appsByName.get(appId), findByApiKey: async () => undefined },
    suppressions: createSuppressions(database),
    suppressing: {
      suppress: async (by, address, suppression) => {
        await createSuppressions(database).put(by, new Map([[address, suppression]]));
        return left;
      },
      store: (by, suppressions) => createSuppressions(database).put(by, suppressions),
      cancelSuppressed: async () => left,
    },
  }),
);
/** The calls that still ring 10 s after the suppression. */
let left: readonly CallId[] = [];

afterEach(() => {
  left = [];
  return database.clear();
});

async function ask(
  method: 'GET' | 'PUT' | 'POST' | 'DELETE',
  path = '',
  { body, appId = 'crm' }: { readonly body?: unknown; readonly appId?: string } = {},
) {
  const response = await harness.server.inject({
    method,
    url: `/api/public/suppressions${path}`,
    headers: {
      auth: await token({ appId }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { payload: JSON.stringify(body) }),
  });
  return { status: response.statusCode, body: response.json<Record<string, unknown>>() };
}

const optOut = { reason: 'opt-out', source: 'web form' };
const stored = { ...optOut, createdAt: expect.any(String), appId: 'crm' };

test('a number is suppressed, read and allowed again', async () => {
  const put = await ask('PUT', '/+12025550110', { body: optOut });
  const read = await ask('GET', '/12025550110');
  const removed = await ask('DELETE', '/+1-202-555-0110');
  const after = await ask('GET', '/+12025550110');

  expect(put).toEqual({ status: 200, body: { number: '+12025550110', ...stored } });
  expect(read.body).toEqual(put.body);
  expect(removed).toEqual({ status: 200, body: { number: '+12025550110', removed: true } });
  expect(after.status).toBe(404);
});

test('national numbers are read as the app reads them', async () => {
  const { body } = await ask('PUT', '/2025550110', { body: optOut });

  expect(body).toMatchObject({ number: '+12025550110' });
});

test('a sip: URI is suppressed without its port', async () => {
  const uri = encodeURIComponent('sip:Bob@PBX.example:5070');
  await ask('PUT', `/${uri}`, { body: { reason: 'other', source: 'crm' } });

  const { body } = await ask('GET', `/${encodeURIComponent('sip:Bob@pbx.example')}`);

  expect(body).toMatchObject({ number: 'sip:Bob@pbx.example', reason: 'other' });
});

test('a suppression is replaced, and keeps the time at which the number was first suppressed', async () => {
  const first = await ask('PUT', '/+12025550110', { body: optOut });
  const until = '2999-01-01T00:00:00Z';
  const second = await ask('PUT', '/+12025550110', {
    body: { reason: 'complaint', source: 'call centre', until },
  });

  expect(second.body).toEqual({
    ...first.body,
    ...{ reason: 'complaint', source: 'call centre', until: '2999-01-01T00:00:00.000Z' },
  });
});

test.each([
  ['/+123', optOut, 'number'],
  ['/bob', optOut, 'number'],
  [`/${encodeURIComponent('tel:7042;phone-context=pbx.example')}`, optOut, 'number'],
  ['/+12025550110', { ...optOut, reason: 'spite' }, 'reason'],
  ['/+12025550110', { reason: 'opt-out' }, 'source'],
  ['/+12025550110', { ...optOut, source: 'x'.repeat(65) }, 'source'],
  ['/+12025550110', { ...optOut, until: 'tomorrow' }, 'until'],
  ['/+12025550110', { ...optOut, until: '2020-01-01T00:00:00Z' }, 'until'],
  ['/+12025550110', { ...optOut, expires: '2999-01-01T00:00:00Z' }, 'expires'],
])('PUT %s %j is refused, naming %s', async (path, body, wrong) => {
  const response = await ask('PUT', path, { body });

  expect(response.status).toBe(400);
  const { errors } = response.body as ProblemDocument;
  expect(errors?.map((error) => error.path)).toEqual([wrong]);
});

test('calls that may still ring are named', async () => {
  left = ['call-1' as CallId];

  const { status, body } = await ask('PUT', '/+12025550110', { body: optOut });

  expect(status).toBe(200);
  expect(body).toMatchObject({ number: '+12025550110', left: ['call-1'] });
});

test('suppressions are listed page by page', async () => {
  const numbers = ['+12025550110', '+12025550111', '+12025550112'];
  for (const number of numbers) await ask('PUT', `/${number}`, { body: optOut });

  const first = await ask('GET', '?limit=2');
  const second = await ask('GET', `?limit=2&cursor=${String(first.body['nextCursor'])}`);

  expect(first.body['suppressions']).toEqual(
    numbers.slice(0, 2).map((number) => ({ number, ...stored })),
  );
  expect(second.body).toEqual({ suppressions: [{ number: numbers[2], ...stored }] });
  expect((await ask('GET', '?cursor=nonsense')).status).toBe(400);
});

test('numbers are checked in the order of the request', async () => {
  await ask('PUT', '/+12025550110', { body: { ...optOut, until: '2999-01-01T00:00:00Z' } });

  const { body } = await ask('POST', '/check', {
    body: { numbers: ['+12025550111', '12025550110', '+12025550110'] },
  });

  const suppressed = {
    ...{ number: '+12025550110', suppressed: true, reason: 'opt-out' },
    until: '2999-01-01T00:00:00.000Z',
  };
  expect(body).toEqual({
    results: [{ number: '+12025550111', suppressed: false }, suppressed, suppressed],
  });
});

test('a check names each number that cannot be read, and takes at most 10,000', async () => {
  const wrong = await ask('POST', '/check', { body: { numbers: ['+1', '+12025550110', 'bob'] } });
  const most = Array.from(
    { length: 10_000 },
    (_, index) => `+1202555${String(index).padStart(4, '0')}`,
  );
  const full = await ask('POST', '/check', { body: { numbers: most } });
  const tooMany = await ask('POST', '/check', { body: { numbers: [...most, '+12025550110'] } });

  expect((wrong.body as ProblemDocument).errors?.map(({ path }) => path)).toEqual([
    'numbers.0',
    'numbers.2',
  ]);
  expect(full.body['results']).toHaveLength(10_000);
  expect(tooMany.status).toBe(400);
});

test('suppressions belong to their account and need the scope', async () => {
  await ask('PUT', '/+12025550110', { body: optOut });

  const other = await ask('GET', '/+12025550110', { appId: 'of-another-account' });
  const refused = await ask('GET', '/+12025550110', { appId: 'dialer' });

  expect(other.status).toBe(404);
  expect(refused.status).toBe(403);
});
