// A batch test run is found under `stream/{streamId}` by the identifier that it was published with.
// No operator needs to register that identifier. Using the identifier of somebody else gives a
// producer or a tenant no access.

import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import {
  applyTestRuns,
  botsOfRunStatement,
  findTestRun,
} from '../../src/companion/test-runs/stored-test-runs.ts';
import type { PublishedTestRun } from '../../src/companion/test-runs/test-run-schema.ts';
import { covers } from '../specification/covers.ts';
import { databaseKinds } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { forSuite } from '../support/opened.ts';
import { planOf } from '../support/plan-of.ts';
import { problemOf, startRig, type TestApp } from './support.ts';
import { completed, publish, runId, running, statusPath, suite } from './test-runs-support.ts';

const { streamId } = running();

describe.each(databaseKinds)('test runs of a stream on %s', (kind) => {
  let ofFirst: TestApp;
  let ofSecond: TestApp;
  const rig = forSuite(() => startRig(kind, { nats: true }));
  beforeAll(async () => {
    await rig.addBot({ botId: 'b-1', accountId: 'acme' });
    await rig.addBot({ botId: 'b-2', streamId: 'st-2', accountId: 'acme' });
    await rig.addBot({ botId: 'b-rival', streamId: 'st-rival', accountId: 'rival' });
    ofFirst = await rig.addApp({ bots: ['b-1'] });
    ofSecond = await rig.addApp({ bots: ['st-2'] });
  });
  afterEach(() => rig.clear());

  let version = 0;
  /** Stores a run as the consumer does after a producer has published it for this bot. */
  const told = async (botId: string, run: PublishedTestRun, accountId = 'acme') => {
    version += 1;
    const store = applyTestRuns(
      rig.database,
      { put: async () => undefined },
      { now: () => new Date() },
    );
    await store([{ bot: { botId, accountId }, body: run, version }]);
  };
  const ask = async (stream = streamId, as: TestApp = rig.acme, name = suite) =>
    await rig.ask('GET', statusPath(name, { form: 'stream', bot: stream }), undefined, { as });
  const statusOf = async (...asked: Parameters<typeof ask>) => (await ask(...asked)).statusCode;

  test('the identifier that a run was published with finds it, even if no bot is registered under it', async () => {
    covers('test-runs.status.path.streamId');
    await publish(rig.events, running());
    const key = { accountId: 'acme', botId: 'b-1', runId };
    await eventually(
      async () => (await findTestRun(rig.database, key)) !== undefined,
      'the run is stored',
    );

    const response = await ask();

    const { testSuiteName: _name, ...run } = running();
    expect(response.statusCode).toBe(200);
    expect(response.json()).toEqual(run);
  });

  test('an app that may see the bot of the run finds it, and another app does not', async () => {
    await told('b-1', running());
    await told('b-2', running({ _id: 'tr-2' }));

    expect(await statusOf(streamId, ofFirst)).toBe(200);
    expect(await statusOf(streamId, ofSecond)).toBe(404);
    expect(await statusOf(streamId, rig.powerless)).toBe(403);
  });

  test('the link of such a run leads to its file', async () => {
    await told('b-1', completed({ resultCsv: 'a,b\r\n' }));

    const { result } = (await ask()).json<{ result: { fileUrl: string } }>();

    expect(result.fileUrl).toContain(`/api/public/test-results/acme/b-1/${runId}?`);
  });

  test('suite, run and language must match, as with the bot', async () => {
    await told('b-1', running());
    const path = statusPath(suite, { form: 'stream', bot: streamId });
    const inLanguage = async (language: string) =>
      (await rig.ask('GET', path, undefined, { headers: { 'bot-language': language } })).statusCode;

    expect(await statusOf(streamId, rig.acme, 'Another suite')).toBe(404);
    expect(await statusOf('st-other')).toBe(404);
    expect(await inLanguage('de')).toBe(404);
    expect(await inLanguage('en-US')).toBe(200);
    const other = statusPath(suite, { form: 'stream', bot: streamId, id: 'tr-other' });
    expect((await rig.ask('GET', other)).statusCode).toBe(404);
  });

  test('the last version determines the stream', async () => {
    await told('b-1', running());
    await told('b-1', running({ streamId: 'st-later' }));

    expect(await statusOf('st-later')).toBe(200);
    expect(await statusOf()).toBe(404);
  });

  test('another account finds only what it published under the same identifier itself', async () => {
    await told('b-1', running({ utterance_ran: 7 }));
    expect(await statusOf(streamId, rig.rival)).toBe(404);

    await told('b-rival', running({ utterance_ran: 39 }), 'rival');

    expect((await ask()).json()).toMatchObject({ utterance_ran: 7 });
    expect((await ask(streamId, rig.rival)).json()).toMatchObject({ utterance_ran: 39 });
  });

  test('a registered identifier names only its own bot, whatever runs are published with it', async () => {
    await told('b-1', running({ streamId: 'st-2' }));
    await told('b-1', running({ _id: 'tr-2', streamId: 'st-rival' }));
    expect(await statusOf('st-2')).toBe(404);
    expect(await statusOf('st-rival', rig.acme)).toBe(404);
    expect(await statusOf('st-rival', rig.rival)).toBe(404);

    await told('b-2', running({ utterance_ran: 7 }));

    expect((await ask('st-2')).json()).toMatchObject({ utterance_ran: 7 });
  });

  test('a run of one stream that two bots publish is ambiguous', async () => {
    await told('b-1', running({ utterance_ran: 7 }));
    await told('b-2', running({ utterance_ran: 39 }));

    const both = await ask();

    expect(both.statusCode).toBe(404);
    expect(problemOf(both).detail).toMatch(/^More than one bot/);
    expect((await ask(streamId, ofFirst)).json()).toMatchObject({ utterance_ran: 7 });
    expect((await ask(streamId, ofSecond)).json()).toMatchObject({ utterance_ran: 39 });
  });

  test('the runs of a bot that has moved to another account are not found', async () => {
    await told('b-rival', running());

    expect(await statusOf()).toBe(404);
    expect(await statusOf(streamId, rig.rival)).toBe(404);
  });

  test('a run of the bot with this name takes precedence over a run that only claims it', async () => {
    await told('st-unregistered', running({ utterance_ran: 7 }));
    await told('b-1', running({ utterance_ran: 39, streamId: 'st-unregistered' }));

    expect((await ask('st-unregistered')).json()).toMatchObject({ utterance_ran: 7 });
  });

  test('is found by an index, however many runs there are', async () => {
    await rig.database.pool.query(`
      insert into test_runs
      select 'acme', 'b-1', 'tr-' || i, 'Smoke test', '{"streamId":"st-9"}'::jsonb, null, true, i, now()
      from generate_series(1, 5000) i`);
    const asked = { accountId: 'acme', streamId: 'st-9', suiteName: suite, runId: 'tr-7' };
    const statement = botsOfRunStatement({ ...asked, botIds: undefined });
    const plan = await planOf(rig.database.pool, statement);

    expect(plan).toContain('test_runs_by_id');
  });
});
