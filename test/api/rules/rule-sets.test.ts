// Rule sets over HTTP, and the checks of dial-out requests, on the embedded database.

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { checkCall } from '../../../src/store/rules/call-checks.ts';
import { createRuleBook } from '../../../src/store/rules/rule-book.ts';
import { createRuleSetStore } from '../../../src/store/rules/rule-sets.ts';
import { createSuppressions } from '../../../src/store/rules/suppressions.ts';
import { openTestDatabase, type TestDatabase } from '../../support/databases.ts';
import {
  apps,
  app as appWith,
  dial,
  type Harness,
  minimal,
  type ProblemDocument,
  startHarness,
  token,
} from '../support.ts';

/** At every hour of every day. */
const always = { hours: { windows: [{ days: 'mon-sun', from: '00:00', until: '24:00' }] } };
const consent = { basis: 'written', at: '2026-01-02T03:04:05Z', reference: 'form-7' } as const;

const ruler = appWith({ appId: 'app-rules', scopes: ['Calling Rules', 'Dialout'] });
const stranger = appWith({ appId: 'app-other', accountId: 'other', scopes: ['Calling Rules'] });

let database: TestDatabase;
let harness: Harness;

beforeAll(async () => {
  database = await openTestDatabase('pglite');
  const known = { ...apps, [ruler.appId]: ruler, [stranger.appId]: stranger };
  const clock = { now: () => new Date() };
  const book = createRuleBook(database.pool, () => Date.now());
  const store = createRuleSetStore({ database, clock });
  harness = await startHarness({
    apps: { find: async (appId) => known[appId], findByApiKey: async () => undefined },
    ruleSets: {
      ...store,
      put: (...change) => store.put(...change).finally(() => book.changed()),
      remove: (...change) => store.remove(...change).finally(() => book.changed()),
    },
    rules: {
      find: (accountId, name) => book.find(accountId, name),
      check: (call) => checkCall(database.pool, call, clock.now()),
    },
  });
});

afterEach(async () => {
  for (const { name } of (await ask('GET')).json<{ ruleSets: { name: string }[] }>().ruleSets) {
    await ask('DELETE', `/${name}`);
  }
  harness.submissions.length = 0;
});

afterAll(async () => {
  await harness[Symbol.asyncDispose]();
  await database.remove();
});

async function ask(
  method: 'GET' | 'PUT' | 'DELETE',
  path = '',
  body?: object,
  appId: string = ruler.appId,
) {
  return await harness.server.inject({
    method,
    url: `/api/public/rules${path}`,
    headers: { auth: await token({ appId }) },
    ...(body === undefined ? {} : { payload: body }),
  });
}

describe('/api/public/rules', () => {
  test('stores a rule set, reads it, lists it and deletes it', async () => {
    const stored = await ask('PUT', '/default', always);

    expect(stored.statusCode).toBe(200);
    expect(stored.json()).toMatchObject({
      name: 'default',
      changedByApp: ruler.appId,
      document: always,
    });
    expect((await ask('GET', '/default')).json()).toEqual(stored.json());
    expect((await ask('GET')).json()).toEqual({ ruleSets: [stored.json()] });
    expect((await ask('DELETE', '/default')).json()).toEqual({ name: 'default', removed: true });
    expect((await ask('GET', '/default')).statusCode).toBe(404);
    expect((await ask('DELETE', '/default')).statusCode).toBe(404);
  });

  test('reads an earlier version', async () => {
    const { version } = (await ask('PUT', '/evening', always)).json<{ version: number }>();
    await ask('PUT', '/evening', { consent: 'required' });

    const earlier = await ask('GET', `/evening?version=${version}`);

    expect(earlier.json()).toMatchObject({ version, document: always });
    expect((await ask('GET', '/evening')).json()).toMatchObject({ version: version + 1 });
    expect((await ask('GET', '/evening?version=0')).statusCode).toBe(400);
  });

  test('names each field that is not valid', async () => {
    const response = await ask('PUT', '/default', {
      hours: { windows: [{ days: 'mon', from: '21:00', until: '08:00' }] },
      attempt: [],
    });

    expect(response.statusCode).toBe(400);
    expect(response.json<ProblemDocument>().errors).toEqual([
      {
        path: 'hours.windows.0.until',
        message: 'must be later than from: a window does not cross midnight, so use two windows',
      },
      { path: 'attempt', message: 'is not known' },
    ]);
  });

  test('refuses a rule set that could never permit a call', async () => {
    const today = Date.now();
    const closed = Array.from({ length: 53 }, (_, week) => {
      const day = new Date(today + week * 7 * 86_400_000);
      return new Date(day.getTime() + ((8 - day.getUTCDay()) % 7) * 86_400_000)
        .toISOString()
        .slice(0, 10);
    });
    const windows = [{ days: 'mon', from: '08:00', until: '21:00' }];

    const response = await ask('PUT', '/default', { hours: { windows, closed } });

    expect(response.json<ProblemDocument>().errors).toEqual([
      {
        path: 'hours.closed',
        message: 'leaves no day within a year on which calls are permitted',
      },
    ]);
  });

  test('needs the scope, and shows an account only its own', async () => {
    await ask('PUT', '/default', always);

    for (const method of ['GET', 'PUT', 'DELETE'] as const) {
      const response = await ask(method, '/default', always, 'app-1');
      expect(response.statusCode).toBe(403);
    }
    expect((await ask('GET', '/default', undefined, stranger.appId)).statusCode).toBe(404);
    expect((await ask('DELETE', '/default', undefined, stranger.appId)).statusCode).toBe(404);
  });

  test('refuses names that are no names', async () => {
    for (const name of ['a%20b', 'a.b', 'x'.repeat(65)]) {
      expect((await ask('PUT', `/${name}`, always)).statusCode).toBe(400);
    }
  });
});

describe('a dial-out request', () => {
  const errorsOf = async (body: object) => {
    const response = await dial(harness, { ...minimal, ...body });
    return response.statusCode === 200 ? [] : response.json<ProblemDocument>().errors;
  };

  test('stores the rule set, the consent and the time zone with the call', async () => {
    await ask('PUT', '/evening', always);

    const body = { rules: 'evening', consent, timeZone: 'America/Chicago' };
    expect(await errorsOf(body)).toEqual([]);

    expect(harness.submissions[0]?.request).toMatchObject({
      ...body,
      consent: { ...consent, at: '2026-01-02T03:04:05.000Z' },
    });
  });

  test('may not name an unknown or deleted rule set', async () => {
    const expected = [{ path: 'rules', message: 'the account has no rule set of this name' }];
    expect(await errorsOf({ rules: 'evening' })).toEqual(expected);

    await ask('PUT', '/evening', always);
    await ask('DELETE', '/evening');
    expect(await errorsOf({ rules: 'evening' })).toEqual(expected);
  });

  test('needs consent if the rule set requires it', async () => {
    await ask('PUT', '/default', { consent: 'required' });

    expect(await errorsOf({})).toEqual([
      { path: 'consent', message: 'is required by rule set default' },
    ]);
    expect(await errorsOf({ consent: { ...consent, basis: 'verbal' } })).toEqual([]);
  });

  test('is not checked against `default` if it names another rule set', async () => {
    await ask('PUT', '/default', { consent: 'required' });
    await ask('PUT', '/evening', always);

    expect(await errorsOf({ rules: 'evening' })).toEqual([]);
  });

  test.each(['artificial', 'recorded'])(
    'needs written consent for a voice that is %s',
    async (voice) => {
      await ask('PUT', '/default', { consent: 'required', voice });

      expect(await errorsOf({ consent: { ...consent, basis: 'verbal' } })).toEqual([
        {
          path: 'consent.basis',
          message: `must be written, as rule set default has voice ${voice}`,
        },
      ]);
      expect(await errorsOf({ consent })).toEqual([]);
    },
  );

  test('may not have consent from the future', async () => {
    const at = new Date(Date.now() + 3_600_000).toISOString();
    expect(await errorsOf({ consent: { ...consent, at } })).toEqual([
      { path: 'consent.at', message: 'must not be in the future' },
    ]);
  });

  test('must let the phone ring long enough', async () => {
    await ask('PUT', '/default', { ringAtLeastMs: 15_000 });

    expect(await errorsOf({ timeoutInMs: 14_999 })).toEqual([
      {
        path: 'timeoutInMs',
        message: 'must be at least 15000, the ringAtLeastMs of rule set default',
      },
    ]);
    expect(await errorsOf({ timeoutInMs: 15_000 })).toEqual([]);
  });

  test('needs detection if abandoned calls are counted', async () => {
    await ask('PUT', '/default', { abandoned: { formula: 'ftc', most: 3 } });

    expect(await errorsOf({})).toMatchObject([{ path: 'machineDetection' }]);
    expect(await errorsOf({ machineDetection: 'detect' })).toEqual([]);
  });

  test('may wait for 72 hours only under a rule set with hours', async () => {
    const hourMs = 3_600_000;
    expect(await errorsOf({ queueTimeoutMs: 2 * hourMs })).toEqual([
      {
        path: 'queueTimeoutMs',
        message: 'must be at most 3600000, because no rule set with hours applies',
      },
    ]);

    await ask('PUT', '/default', always);
    expect(await errorsOf({ queueTimeoutMs: 72 * hourMs })).toEqual([]);
    expect(await errorsOf({ queueTimeoutMs: 73 * hourMs })).toMatchObject([
      { path: 'queueTimeoutMs' },
    ]);
  });

  test('may not name a time zone that does not exist', async () => {
    expect(await errorsOf({ timeZone: 'America/Springfield' })).toEqual([
      { path: 'timeZone', message: 'must be an IANA time zone, e.g. America/New_York' },
    ]);
  });
});

describe('a dial-out request with check=true', () => {
  const check = async (body: object, query = '?check=true') =>
    await harness.server.inject({
      method: 'POST',
      url: `/api/1.1/public/bot/st-1/V2/contactcenter/dialout${query}`,
      headers: { auth: await token() },
      payload: { ...minimal, target: 'tel:+12025550110', ...body },
    });

  test('says that the call is permitted, and places none', async () => {
    expect((await check({})).json()).toEqual({ permitted: true, timeZones: ['America/New_York'] });
    expect(harness.submissions).toEqual([]);
  });

  test('names the rule, the rule set and the time', async () => {
    // One minute, half a day from now, in the zone of the request.
    const later = new Date(Date.now() + 12 * 3_600_000);
    const minute = Math.floor(later.getTime() / 60_000) * 60_000;
    const from = new Date(minute).toISOString().slice(11, 16);
    const until =
      from === '23:59' ? '24:00' : new Date(minute + 60_000).toISOString().slice(11, 16);
    const { version } = (
      await ask('PUT', '/brief', { hours: { windows: [{ days: 'mon-sun', from, until }] } })
    ).json<{ version: number }>();

    const response = await check({ rules: 'brief', timeZone: 'UTC' });

    expect(response.json()).toEqual({
      permitted: false,
      rule: 'hours',
      notBefore: new Date(minute).toISOString(),
      ruleSet: 'brief',
      ruleSetVersion: version,
      timeZones: ['UTC'],
    });
  });

  test('names a suppression, also without a rule set', async () => {
    const suppressions = createSuppressions(database);
    const until = new Date(Date.now() + 3_600_000);
    const suppression = { reason: 'opt-out', source: 'phone', until } as const;
    await suppressions.put(ruler, new Map([['+12025550110', suppression]]));

    for (const target of ['tel:+12025550110', 'sip:+12025550110@pbx.example.com']) {
      expect((await check({ target })).json()).toMatchObject({
        permitted: false,
        rule: 'suppressed',
        notBefore: until.toISOString(),
      });
    }

    await suppressions.remove(ruler.accountId, '+12025550110');
    expect((await check({})).json()).toMatchObject({ permitted: true });
  });

  test('reports what is not valid, as without it', async () => {
    const response = await check({ rules: 'unknown' });

    expect(response.statusCode).toBe(400);
    expect((await check({}, '?check=maybe')).statusCode).toBe(400);
  });

  test('check=false places the call', async () => {
    await check({}, '?check=false');
    expect(harness.submissions).toHaveLength(1);
  });
});
