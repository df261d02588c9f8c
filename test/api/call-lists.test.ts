// Lists of calls as JSON and CSV, and their summaries, over HTTP.

import { describe, expect, test } from 'vitest';
import type { CallSummary } from '../../src/interactions/call-queries.ts';
import { forEachTest } from '../support/opened.ts';
import { type ProblemDocument, startHarness, token } from './support.ts';

const harness = forEachTest(startHarness);
const lists = ['/api/public/calls', '/api/public/bot/st-1/calls'];

async function ask(url: string, headers: Record<string, string> = {}) {
  return await harness.server.inject({ url, headers: { auth: await token(), ...headers } });
}

const call = (callId: string, changes: Partial<CallSummary> = {}): CallSummary => ({
  ...{ callId, sid: 's', conversationId: 'c', botId: 'st-1', state: 'ended', status: 'failed' },
  ...{ target: 'tel:+12025550110', caller: '1', machineDetection: 'detect' },
  ...{ acceptedAt: '2026-11-24T08:00:00.000Z', ...changes },
});

describe.each(lists)('GET %s', (path) => {
  test('accepts every filter', async () => {
    const query =
      'number=%2B12025550110&verdict=amd_human_detected&campaign=spring&metadata[orderId]=17&metadata[a.b]=c%20d&day=2026-10-25&timeZone=Europe/Berlin';

    await ask(`${path}?${query}`);

    expect(harness.listed[0]?.filter).toEqual({
      limit: 50,
      number: '12025550110',
      verdict: 'amd_human_detected',
      campaign: 'spring',
      metadata: { orderId: '17', 'a.b': 'c d' },
      acceptedFrom: new Date('2026-10-24T22:00:00Z'),
      acceptedTo: new Date('2026-10-25T23:00:00Z'),
    });
  });

  test.each(['+12025550110', '%2B12025550110', '12025550110', 'tel:%2B1-202-555-0110'])(
    'reads a number as a dial-out does, and an unescaped plus: %s',
    async (number) => {
      await ask(`${path}?number=${number}`);

      expect(harness.listed[0]?.filter.number).toBe('12025550110');
    },
  );

  test.each([
    ['number=2025550110', 'number'],
    ['number=bob', 'number'],
    ['verdict=person', 'verdict'],
    ['campaign=', 'campaign'],
    ['metadata[a]=1&metadata[a]=2', 'metadata.a'],
    ['metadata[]=1', 'metadata[]'],
    ['metadata=1', 'metadata'],
    [`${Array.from({ length: 9 }, (_, index) => `metadata[m${index}]=1`).join('&')}`, 'metadata'],
    ['day=2026-02-30', 'day'],
    ['day=2026-11-24&from=2026-11-24T00:00:00Z', 'day'],
    ['day=2026-11-24&timeZone=Berlin', 'timeZone'],
    ['timeZone=Europe/Berlin', 'timeZone'],
    ['format=xml', 'format'],
  ])('?%s is a 400 that names %s', async (query, member) => {
    const response = await ask(`${path}?${query}`);

    expect(response.statusCode).toBe(400);
    expect(response.json<ProblemDocument>().errors?.map((error) => error.path)).toEqual([member]);
  });

  test('says which period it searched', async () => {
    const searched = { from: '2026-11-24T08:00:00.000Z', to: '2026-11-24T09:00:00.000Z' };
    harness.pages.push({ calls: [], nextCursor: 'next', searched });

    expect((await ask(path)).json()).toEqual({ calls: [], nextCursor: 'next', searched });
  });

  test.each([
    ['?format=csv', {}],
    ['', { accept: 'text/csv' }],
    ['', { accept: 'application/json;q=0.5, text/csv' }],
    ['?format=csv', { accept: 'application/json' }],
  ])('is a CSV file of all pages with %j and %j', async (query, headers) => {
    const evil = '=cmd()';
    harness.pages.push(
      { calls: [call('call-1', { reason: evil })], nextCursor: 'one', searched: {} },
      { calls: [], nextCursor: 'two', searched: {} },
      { calls: [call('call-2')], searched: {} },
    );

    const response = await ask(`${path}${query}`, headers);

    expect(response.headers['content-type']).toMatch(/^text\/csv/);
    expect(response.headers['content-disposition']).toContain('calls.csv');
    const [header, first, second, ...rest] = response.body.split('\r\n');
    expect(header).toMatch(/^acceptedAt,callId,botId,/);
    expect(first).toContain(`,'${evil},`);
    expect(second).toContain(',call-2,');
    expect(rest).toEqual(['']);
    expect(harness.listed.map(({ filter }) => [filter.limit, filter.cursor])).toEqual([
      ...[
        [200, undefined],
        [200, 'one'],
        [200, 'two'],
      ],
    ]);
  });

  test('ends a CSV file at its limit, with the cursor', async () => {
    harness.pages.push({ calls: [call('call-1'), call('call-2')], nextCursor: 'n', searched: {} });

    const { body } = await ask(`${path}?format=csv&limit=2`);

    expect(body.split('\r\n').slice(-2)).toEqual(['# nextCursor=n', '']);
  });

  test('refuses a CSV file with its status', async () => {
    expect((await ask(`${path}?format=csv&cursor=bad`)).statusCode).toBe(400);
    expect((await ask(path, { accept: 'text/html' })).statusCode).toBe(406);
  });
});

describe.each(lists)('GET %s/summary', (path) => {
  test('is of a day in its zone, or of a period', async () => {
    await ask(`${path}/summary?day=2026-11-24&timeZone=Europe/Berlin`);
    await ask(`${path}/summary?from=2026-11-17T00:00:00Z&to=2026-11-24T08:15:00Z&quarters=true`);
    await ask(`${path}/summary?day=2026-11-24&outcome=completed&verdict=amd_human_detected`);

    expect(harness.summarized.map(({ period }) => period)).toEqual([
      {
        from: new Date('2026-11-23T23:00:00Z'),
        to: new Date('2026-11-24T23:00:00Z'),
        ...{ timeZone: 'Europe/Berlin', filter: {} },
        withQuarters: false,
      },
      {
        from: new Date('2026-11-17T00:00:00Z'),
        to: new Date('2026-11-24T08:15:00Z'),
        ...{ timeZone: 'UTC', filter: {} },
        withQuarters: true,
      },
      {
        from: new Date('2026-11-24T00:00:00Z'),
        to: new Date('2026-11-25T00:00:00Z'),
        timeZone: 'UTC',
        filter: { outcome: 'completed', verdict: 'amd_human_detected' },
        withQuarters: false,
      },
    ]);
  });

  test('may be of a whole quarter, also if daylight saving time ends in it', async () => {
    const [from, to] = ['2026-10-01T00:00:00%2B02:00', '2027-01-01T00:00:00%2B01:00'];

    const response = await ask(`${path}/summary?from=${from}&to=${to}&timeZone=Europe/Berlin`);

    expect(response.statusCode).toBe(200);
  });

  test('is of today without a period', async () => {
    const response = await ask(`${path}/summary?timeZone=Asia/Tokyo`);

    const { from, to } = response.json<{ from: string; to: string }>();
    expect(Date.parse(to) - Date.parse(from)).toBe(86_400_000);
    expect(from).toMatch(/T15:00:00\.000Z$/);
  });

  test.each([
    ['day=yesterday', 'day'],
    ['timeZone=Mars', 'timeZone'],
    ['from=2026-11-24T00:00:00Z', 'from'],
    ['from=2026-11-24T00:01:00Z&to=2026-11-25T00:00:00Z', 'from'],
    ['from=2026-11-24T00:00:00Z&to=2026-11-25T00:00:01Z', 'to'],
    ['from=2026-01-01T00:00:00Z&to=2026-11-25T00:00:00Z', 'to'],
    ['from=2026-11-10T00:00:00Z&to=2026-11-24T00:00:00Z&quarters=true', 'to'],
    ['quarters=yes', 'quarters'],
    ['outcome=engaged', 'outcome'],
  ])('?%s is a 400 that names %s', async (query, member) => {
    const response = await ask(`${path}/summary?${query}`);

    expect(response.statusCode).toBe(400);
    expect(response.json<ProblemDocument>().errors?.map((error) => error.path)).toEqual([member]);
  });
});

test.each(lists)('GET %s/callers is by day for at most 14 days', async (path) => {
  const query = (to: string) => `${path}/callers?from=2026-11-01T00:00:00Z&to=${to}&days=true`;

  expect((await ask(query('2026-11-15T00:00:00Z'))).statusCode).toBe(200);
  const tooLong = await ask(query('2026-11-20T00:00:00Z'));
  expect(tooLong.json<ProblemDocument>().errors?.map((error) => error.path)).toEqual(['to']);
});
