// The export of the records of calls over HTTP, on a real database.

import { createHash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { createCallRecords } from '../../../src/store/rules/call-records.ts';
import { type Ask, errorsOf, startRig } from '../../companion/support.ts';
import { databaseKinds } from '../../support/databases.ts';
import { forSuite } from '../../support/opened.ts';
import { insertRows } from '../../support/tables.ts';
import { app, startHarness, token } from '../support.ts';

const sha256 = '0a'.repeat(32);
const agentAt = '2026-11-20T09:00:12.000Z';
const transferred = {
  ...{ accountId: 'acme', callId: 'call-1', appId: 'app-1', botId: 'st-1', trunk: 'carrier' },
  ...{ acceptedAt: '2026-11-20T09:00:00.000Z', number: '12025550110', caller: '+15559876543' },
  ...{ callerName: '=Sunny', dialedAt: '2026-11-20T09:00:01.000Z' },
  ...{ ringingAt: '2026-11-20T09:00:02.000Z', answeredAt: '2026-11-20T09:00:05.500Z' },
  ...{ endedAt: '2026-11-20T09:01:05.500Z', outcome: 'completed' },
  ...{ reasonCode: 'Caller-disconnected', verdict: 'amd_human_detected', campaign: 'autumn' },
  ...{ timeZone: 'America/New_York', ruleSet: 'default', ruleSetVersion: 3 },
  consent: { basis: 'written', at: '2026-06-01T08:00:00.000Z', reference: 'form-7' },
  evidence: {
    sounds: [
      { name: 'sound:offer', sha256 },
      { name: 'https://sounds.example/a.wav', sha256 },
    ],
    connections: [
      { with: 'bot', at: '2026-11-20T09:00:06.000Z' },
      { with: 'agent', at: agentAt, to: 'tel:+12025550199' },
    ],
  },
};
const refused = {
  ...{ accountId: 'acme', callId: 'call-2', appId: 'app-1', botId: 'st-2' },
  ...{ acceptedAt: '2026-11-20T09:30:00.000Z', caller: '15559876543' },
  target: { kind: 'sip', user: 'anna', host: 'pbx.example' },
  ...{ endedAt: '2026-11-20T09:30:00.010Z', outcome: 'cancelled' },
};

/** Splits a file into the lines before the last one, and the last one. */
function split(text: string): { readonly lines: readonly string[]; readonly trailer: string } {
  const lines = text.split(/(?<=\n)/);
  return { lines: lines.slice(0, -1), trailer: lines.at(-1) ?? '' };
}

/** The columns of a call that nobody answered. */
const missing = {
  ...{ trunk: null, number: null, target: null, caller_name: null, dialed_at: null },
  ...{ ringing_at: null, answered_at: null, reason_code: null, verdict: null, campaign: null },
  ...{ time_zone: null, consent: null, rule_set: null, rule_set_version: null, rule: null },
  ...{ ftc_outcome: null, ofcom_outcome: null, evidence: null },
};

const hashOf = (lines: readonly string[]): string =>
  createHash('sha256').update(lines.join('')).digest('hex');

describe.each(databaseKinds)('GET /api/public/records on %s', (kind) => {
  const rig = forSuite(() =>
    startRig(kind, {
      services: async ({ database }) => ({ records: createCallRecords(database) }),
    }),
  );
  afterEach(() => rig.clear());

  const insert = (rows: readonly object[]) => insertRows(rig.database.pool, 'call_records', rows);
  const exported = async (query: Ask['query'] = {}, ask: Ask = {}) =>
    await rig.ask('GET', '/api/public/records', undefined, { query, ...ask });
  const idsIn = (text: string) =>
    split(text).lines.map((line) => (JSON.parse(line) as { callId: string }).callId);

  test('has each record as NDJSON, and a last line that counts and hashes them', async () => {
    await insert([refused, transferred]);

    const response = await exported();

    expect(response.statusCode).toBe(200);
    expect(response.headers['content-type']).toBe('application/x-ndjson');
    const { lines, trailer } = split(response.body);
    const { accountId: _account, evidence, ...members } = transferred;
    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
      {
        ...{ ...members, ...evidence, number: '+12025550110', target: 'tel:+12025550110' },
        ...{ ringMs: 3_500, talkMs: 60_000 },
      },
      {
        ...{ callId: 'call-2', appId: 'app-1', botId: 'st-2', target: 'sip:anna@pbx.example' },
        ...{ acceptedAt: refused.acceptedAt, endedAt: refused.endedAt },
        ...{ caller: '15559876543', outcome: 'cancelled' },
      },
    ]);
    expect(JSON.parse(trailer)).toEqual({ trailer: true, records: 2, sha256: hashOf(lines) });
  });

  test('has each record as CSV, in which a spreadsheet runs no formula', async () => {
    await insert([refused, transferred]);

    const response = await exported({}, { headers: { accept: 'text/csv' } });

    const { lines, trailer } = split(response.body);
    const [header, first, second] = lines.map((line) => line.trimEnd().split(','));
    const cells = Object.fromEntries((header ?? []).map((name, index) => [name, first?.[index]]));
    expect(cells).toMatchObject({
      ...{ callId: 'call-1', number: '+12025550110', callerName: "'=Sunny", talkMs: '60000' },
      ...{ consentBasis: 'written', ruleSetVersion: '3' },
      sounds: `sound:offer ${sha256} https://sounds.example/a.wav ${sha256}`,
      connectedTo: 'bot agent',
      connectedAt: `2026-11-20T09:00:06.000Z ${agentAt}`,
      transferredTo: 'tel:+12025550199',
    });
    expect(second).toHaveLength(header?.length ?? 0);
    expect(second?.[(header ?? []).indexOf('connectedTo')]).toBe('nobody');
    expect(trailer).toBe(`# records=2 sha256=${hashOf(lines)}\r\n`);
  });

  test.each([
    ['ndjson', `{"trailer":true,"records":0,"sha256":"${hashOf([])}"}\n`],
    ['csv', /^callId,.*\r\n# records=0 sha256=[0-9a-f]{64}\r\n$/],
  ])('is a whole file without a record too, as %s', async (format, expected) => {
    const { body } = await exported({ format });

    if (typeof expected === 'string') expect(body).toBe(expected);
    else expect(body).toMatch(expected);
  });

  test('is of a period and a campaign', async () => {
    await insert([transferred, refused, { ...transferred, callId: 'call-3', campaign: 'spring' }]);

    const [hour, autumn, others] = [
      await exported({ from: '2026-11-20T09:30:00Z', to: '2026-11-20T10:00:00Z' }),
      await exported({ campaign: 'autumn' }),
      await exported({ to: '2026-11-20T09:30:00Z' }),
    ];

    expect(idsIn(hour.body)).toEqual(['call-2']);
    expect(idsIn(autumn.body)).toEqual(['call-1']);
    expect(idsIn(others.body)).toEqual(['call-1', 'call-3']);
  });

  test('has only calls of the account, and of the bots that the app may use', async () => {
    await insert([transferred, refused, { ...transferred, accountId: 'rival', callId: 'call-9' }]);
    const limited = await rig.addApp({ bots: ['st-2'] });

    expect(idsIn((await exported()).body)).toEqual(['call-1', 'call-2']);
    expect(idsIn((await exported({}, { as: limited })).body)).toEqual(['call-2']);
    expect(idsIn((await exported({}, { as: rig.rival })).body)).toEqual(['call-9']);
    expect((await exported({}, { as: rig.powerless })).statusCode).toBe(403);
  });

  test('has thousands of records once and in order, even if many were accepted together', async () => {
    await rig.database.pool.query(
      `insert into call_records (account_id, accepted_at, call_id, app_id, bot_id, caller, ended_at, outcome, campaign)
       select 'acme', timestamptz '2026-11-20T09:00:00Z' + n / 700 * interval '1 ms', 'call-' || n, 'app-1', 'st-1', '1', now(), 'busy',
         case when n % 1500 = 7 then 'rare' end
       from generate_series(1, 3100) n`,
    );

    const all = await exported();
    const rare = await exported({ campaign: 'rare' });

    const ids = idsIn(all.body);
    expect(new Set(ids).size).toBe(3_100);
    expect(ids).toHaveLength(3_100);
    const times = split(all.body).lines.map((line) => /"acceptedAt":"([^"]*)"/.exec(line)?.[1]);
    expect(times).toEqual(times.toSorted((a = '', b = '') => a.localeCompare(b)));
    expect(JSON.parse(split(all.body).trailer)).toMatchObject({ records: 3_100 });
    expect(idsIn(rare.body)).toEqual(['call-7', 'call-1507', 'call-3007']);
  });

  test('names a wrong parameter', async () => {
    const query = { from: 'yesterday', format: 'xml' };

    const response = await exported(query);

    expect(response.statusCode).toBe(400);
    expect(errorsOf(response).map((error) => error.split(':')[0])).toEqual(['from', 'format']);
    expect((await exported({ number: '1' })).statusCode).toBe(400);
    expect((await exported({}, { headers: { accept: 'image/png' } })).statusCode).toBe(406);
  });
});

test('an export may take longer than other responses, and is whole', async () => {
  const record = {
    ...{ call_id: 'call-1', accepted_at: new Date(), app_id: 'app-1', bot_id: 'st-1' },
    ...{ caller: '15559876543', ended_at: new Date(), outcome: 'completed' },
  };
  await using harness = await startHarness(
    {
      apps: {
        find: async () => app({ appId: 'crm', scopes: ['Calling Rules'] }),
        findByApiKey: async () => undefined,
      },
      records: {
        async *read() {
          for (let index = 0; index < 4; index += 1) {
            yield [{ ...missing, ...record }];
            await pause(100);
          }
        },
      },
    },
    [],
    { responseTimeoutMs: 200 },
  );
  const { port } = new URL(await harness.server.listen({ host: '127.0.0.1', port: 0 }));
  const response = await fetch(`http://127.0.0.1:${port}/api/public/records`, {
    headers: { auth: await token({ appId: 'crm' }) },
  });

  const { lines, trailer } = split(await response.text());
  expect(lines).toHaveLength(4);
  expect(JSON.parse(trailer)).toMatchObject({ trailer: true, records: 4 });
});
