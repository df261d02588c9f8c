// The status of batch test runs, from publication on a real nats-server to the response, on both
// databases.

import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { createResultFiles } from '../../src/companion/result-files.ts';
import { createResultLinks } from '../../src/companion/test-runs/result-links.ts';
import {
  applyTestRuns,
  findTestRun,
  type RunKey,
} from '../../src/companion/test-runs/stored-test-runs.ts';
import type { PublishedTestRun } from '../../src/companion/test-runs/test-run-schema.ts';
import { streamNames } from '../../src/events/subjects.ts';
import { covers } from '../specification/covers.ts';
import { databaseKinds } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { forSuite } from '../support/opened.ts';
import { problemOf, type Rig, startRig } from './support.ts';
import {
  completed,
  openBucket,
  publish,
  runId,
  running,
  statusPath,
  suite,
} from './test-runs-support.ts';

const clock = { now: () => new Date() };
const key: RunKey = { accountId: 'acme', botId: 'b-1', runId };

describe.each(databaseKinds)('batch test runs on %s', (kind) => {
  const rig = forSuite(() => startRig(kind, { nats: true }));
  beforeAll(async () => {
    await rig.addBot({ botId: 'b-1', streamId: 'st-1', accountId: 'acme' });
    await rig.addBot({ botId: 'b-rival', accountId: 'rival' });
  });
  afterEach(() => rig.clear());

  /** Stores a run as the consumer does, without NATS. */
  const apply = (...versions: readonly (readonly [PublishedTestRun, number])[]) =>
    applyTestRuns(
      rig.database,
      createResultFiles(rig.events),
      clock,
    )(versions.map(([body, version]) => ({ bot: key, body, version })));

  const stored = async (id = runId, accountId = 'acme', botId = 'b-1') =>
    await findTestRun(rig.database, { accountId, botId, runId: id });

  async function published(run: PublishedTestRun, bot?: string): Promise<void> {
    await publish(rig.events, run, bot);
    await eventually(
      async () => (await stored(run._id))?.run.status === run.status,
      'the run is stored',
    );
  }

  async function fileUrlOf(name = suite): Promise<string> {
    const response = await rig.ask('GET', statusPath(name));
    return response.json<{ result: { fileUrl: string } }>().result.fileUrl;
  }

  test('a running run is returned with its progress, and without the members of a result', async () => {
    covers(
      'test-runs.status.header.auth',
      'test-runs.status.path.botId',
      'test-runs.status.path.testSuiteName',
      'test-runs.status.path.testRunId',
      'test-runs.status.rule.running',
      'test-runs.status.response._id',
      'test-runs.status.response.streamId',
      'test-runs.status.response.testSuiteId',
      'test-runs.status.response.status',
      'test-runs.status.response.utterance_count',
      'test-runs.status.response.result',
      'test-runs.status.response.totalUtterances',
      'test-runs.status.response.utterance_ran',
      'test-runs.status.response.percentage',
      'test-runs.status.response.result._id',
      'test-runs.status.response.result.isPartialFailure',
      'test-runs.status.response.result.status',
      'test-runs.status.response.result.testSuiteId',
      'test-runs.status.response.result.triggeredBy',
      'test-runs.status.response.result.streamId',
      'test-runs.status.response.result.botLanguage',
      'test-runs.status.response.result.runType',
      'test-runs.status.response.result.utterance_count',
      'test-runs.status.response.result.startTime',
      'test-runs.status.response.result.__v',
    );
    const { testSuiteName: _name, ...run } = running();
    const premature = { ...run.result, f1_score: '0.5', fileUrl: 'https://x.example.com', note: 1 };
    const zoned = { ...premature, startTime: '2026-11-20T11:30:00+02:00' };
    await published({ ...running(), result: zoned, extra: true } as PublishedTestRun);

    const response = await rig.ask('GET', statusPath(suite));

    expect(response.statusCode).toBe(200);
    expect(response.json()).toEqual(run);
  });

  test('a completed run is returned with its result, and without its progress', async () => {
    covers(
      'test-runs.status.rule.completed',
      'test-runs.status.response.result.isAvailable',
      'test-runs.status.response.result.endTime',
      'test-runs.status.response.result.f1_score',
      'test-runs.status.response.result.precision',
      'test-runs.status.response.result.recall',
      'test-runs.status.response.result.fileId',
      'test-runs.status.response.result.fileUrl',
      'test-runs.status.response.result.results',
      'test-runs.status.response.result.results.TP',
      'test-runs.status.response.result.results.TN',
      'test-runs.status.response.result.results.FP',
      'test-runs.status.response.result.results.FN',
      'test-runs.status.response.result.results.success',
      'test-runs.status.response.result.results.failure',
      'test-runs.status.response.result.results.traitSuccess',
      'test-runs.status.response.result.results.traitFailure',
      'test-runs.status.response.result.results.totalEntitiesCount',
      'test-runs.status.response.result.results.matchedEntitiesCount',
      'test-runs.status.response.result.results.totalTraitsCount',
      'test-runs.status.response.result.results.matchedTraitsCount',
      'test-runs.status.response.result.results.failedUtteranceCount',
      'test-runs.status.response.result.results.failedEntitiesCount',
    );
    const { testSuiteName: _name, ...run } = completed({}, { fileId: 'file-1' });
    const late = { ...run.result, fileUrl: 'https://elsewhere.example.com/x.csv' };
    await published(running());
    await published({ ...completed(), result: late, percentage: 100 } as PublishedTestRun);

    const response = await rig.ask('GET', statusPath(suite));

    expect(response.statusCode).toBe(200);
    const link = `https://calls.example.com/api/public/test-results/acme/b-1/${runId}`;
    const fileUrl = expect.stringMatching(
      new RegExp(`^${link}\\?expires=\\d+&signature=[0-9a-f]{64}$`),
    ) as string;
    expect(response.json()).toEqual({ ...run, result: { ...run.result, fileUrl } });
  });

  test('the link leads every client to the CSV that came with the message', async () => {
    const resultCsv = 'utterance,expected\r\n"Zażółć, ""gęślą""",🎧\r\n';
    await published(completed({ resultCsv }));
    const url = await fileUrlOf();

    const response = await rig.ask('GET', url, undefined, { as: undefined });

    expect(response.statusCode).toBe(200);
    expect(response.rawPayload.toString('utf8')).toBe(resultCsv);
    expect(response.headers).toMatchObject({
      'content-type': 'text/csv; charset=utf-8',
      'content-disposition': `attachment; filename="${runId}.csv"`,
      'content-length': String(Buffer.byteLength(resultCsv)),
      'x-content-type-options': 'nosniff',
      'cache-control': 'private, no-store',
    });
    const { result } = (await rig.ask('GET', statusPath(suite))).json<{ result: object }>();
    expect(result).toMatchObject({ fileId: runId });
    expect(result).not.toHaveProperty('resultCsv');
  });

  test('the link leads to the exact bytes of a file that the producer put into the bucket', async () => {
    const content = Buffer.alloc(700_000, 'héllo,1\r\n');
    const bucket = await openBucket(rig.events);
    await bucket.putBlob({ name: 'large.csv' }, content);
    await published(completed({}, { fileId: 'large.csv' }));

    const response = await rig.ask('GET', await fileUrlOf());

    expect(response.headers['content-length']).toBe('700000');
    expect(response.rawPayload.equals(content)).toBe(true);
  });

  test.each([
    ['the run says that it is not available', { fileId: 'large.csv', isAvailable: false }],
    ['the run has no file', {}],
  ])('there is no link to a file if %s', async (_name, changes) => {
    await published(completed({}, changes));

    expect(await fileUrlOf()).toBeUndefined();
  });

  test('both forms of the path accept both identifiers of the bot', async () => {
    covers('test-runs.status.path.streamId', 'test-runs.status.path.botId');
    await published(running(), 'st-1');
    const status = async (form: string, bot: string) =>
      (await rig.ask('GET', statusPath(suite, { form, bot }))).statusCode;

    expect(await status('bot', 'b-1')).toBe(200);
    expect(await status('bot', 'st-1')).toBe(200);
    expect(await status('stream', 'st-1')).toBe(200);
    expect(await status('stream', 'b-1')).toBe(200);
  });

  test.each([
    'Regression – Zażółć 🎧',
    '100% / of ?them#',
    "' or 1=1; --",
    'x'.repeat(128),
    // The accent is a separate character.
    'Cafe\u0301',
  ])('the suite %j is found by its name, URL-encoded', async (name) => {
    covers('test-runs.status.path.testSuiteName');
    await published(running({ testSuiteName: name }));

    expect((await rig.ask('GET', statusPath(name))).statusCode).toBe(200);
    expect((await rig.ask('GET', statusPath(name.normalize('NFC')))).statusCode).toBe(200);
    expect((await rig.ask('GET', statusPath(`${name.slice(0, 100)}!`))).statusCode).toBe(404);
  });

  test.each([
    ['en_US', 200],
    ['en-us', 200],
    ['en', 404],
    ['de', 404],
    ['english please', 400],
    ['../..', 400],
  ])('bot-language %j is a %d', async (language, status) => {
    covers('test-runs.status.header.bot-language');
    await apply([running(), 1]);

    const headers = { 'bot-language': language };
    const response = await rig.ask('GET', statusPath(suite), undefined, { headers });

    expect(response.statusCode).toBe(status);
    if (status === 400) expect(problemOf(response).errors?.[0]?.path).toBe('bot-language');
  });

  test('a late or repeated message changes nothing; a completed run never runs again', async () => {
    const progress = (utterance_ran: number) => running({ utterance_ran });
    const ran = async () => {
      const run = (await stored())?.run;
      return run?.status === 'running' ? run.utterance_ran : run?.status;
    };
    await apply([progress(20), 2]);
    await apply([progress(10), 1]);
    expect(await ran()).toBe(20);
    await apply([progress(20), 2], [progress(30), 3], [progress(25), 2]);
    expect(await ran()).toBe(30);

    await apply([progress(40), 5], [completed(), 4]);
    await apply([progress(40), 6]);
    expect(await ran()).toBe('completed');

    const correction = completed({}, { precision: '0.5' });
    await apply([correction, 9]);
    await apply([completed(), 4], [progress(40), 10]);
    expect((await stored())?.run).toMatchObject({ result: { precision: '0.5' } });
  });

  test('the file of a correction replaces the previous one, which readers can read to its end', async () => {
    await apply([completed({ resultCsv: 'first' }), 1]);
    const first = await createResultFiles(rig.events).open((await stored())?.fileName ?? '');
    await apply([completed({ resultCsv: 'second' }), 2]);
    await apply([completed({ resultCsv: 'first' }), 1]);

    const second = await rig.ask('GET', await fileUrlOf());

    expect(second.body).toBe('second');
    expect(Buffer.concat((await first?.content.toArray()) ?? []).toString()).toBe('first');
  });

  test('an invalid run, or one of an unknown bot, becomes a dead letter with its reason', async () => {
    const { manager, prefix } = rig.events;
    const dead = streamNames(prefix).dead;
    const before = (await manager.streams.info(dead)).state.messages;
    const bad: readonly (readonly [object, string, RegExp])[] = [
      [{ ...running(), percentage: '25' }, 'b-1', /percentage/],
      [{ ...running(), testSuiteName: undefined }, 'b-1', /testSuiteName/],
      [{ ...running(), result: completed().result }, 'b-1', /status/],
      [{ ...running(), status: 'queued' }, 'b-1', /status/],
      [completed({}, { f1_score: 0.93 as never }), 'b-1', /f1_score/],
      [completed({}, { startTime: 'yesterday' }), 'b-1', /startTime/],
      [completed({}, { fileId: 'acme/b-1/other' }), 'b-1', /fileId/],
      [running({ _id: 'a/b' }), 'b-1', /_id/],
      [running({ testSuiteName: 'a\u0000b' }), 'b-1', /testSuiteName/],
      [running(), 'nobodys', /not registered/],
    ];

    for (const [run, bot] of bad) await publish(rig.events, run, bot);

    const letters = async () => (await manager.streams.info(dead)).state.messages - before;
    await eventually(async () => (await letters()) === bad.length, 'all are dead letters');
    for (const [index, [, , reason]] of bad.entries()) {
      const letter = await manager.streams.getMessage(dead, { seq: before + index + 1 });
      expect(letter?.json<{ reason: string }>().reason).toMatch(reason);
    }
    expect(await stored()).toBeUndefined();
  });

  test('requires the scope and a JWT; another tenant finds nothing', async () => {
    covers('test-runs.status.rule.scope', 'test-runs.status.header.auth');
    await apply([completed({ resultCsv: 'ours' }), 1]);
    const status = async (ask: Parameters<Rig['ask']>[3], bot = 'b-1') =>
      (await rig.ask('GET', statusPath(suite, { bot }), undefined, ask)).statusCode;

    expect(await status({})).toBe(200);
    expect(await status({ as: rig.powerless })).toBe(403);
    expect(await status({ as: rig.rival })).toBe(404);
    expect(await status({ as: rig.rival }, 'b-rival')).toBe(404);
    expect(await status({ as: undefined })).toBe(401);
    expect(await status({ scheme: 'apiKey' })).toBe(401);
    expect(await status({ headers: { accept: 'text/csv' } })).toBe(406);
    expect((await rig.ask('GET', statusPath(suite, { id: 'tr-other' }))).statusCode).toBe(404);
    expect((await rig.ask('GET', statusPath(suite, { id: 'a%00b' }))).statusCode).toBe(400);
    expect((await rig.ask('GET', statusPath('a\u0000b'))).statusCode).toBe(400);
  });

  test('a link that was changed in any way is refused', async () => {
    await apply([completed({ resultCsv: 'ours' }), 31], [completed({ _id: 'tr-other' }), 32]);
    const url = await fileUrlOf();
    const signature = /signature=(.*)$/.exec(url)?.[1] ?? '';
    const changed = [
      url.replace(runId, 'tr-other'),
      url.replace('/acme/', '/rival/'),
      url.replace('/b-1/', '/st-1/'),
      url.replace(/expires=(\d)/, 'expires=9$1'),
      url.replace('expires=', 'expires=+'),
      url.replace(signature, 'f'.repeat(64)),
      url.replace(signature, signature.slice(2)),
      url.replace(signature, `${signature}00`),
      url.replace(signature, ''),
      url.replace(/&signature.*/, ''),
      url.replace(/\?.*/, ''),
      `${url}&expires=9999999999`,
      `${url}0`,
      `${url}zz`,
      url.replace(signature, signature.toUpperCase()),
    ];

    for (const link of changed) {
      const response = await rig.ask('GET', link, undefined, { as: undefined });
      expect([link, response.statusCode]).toEqual([link, 403]);
      expect(problemOf(response).detail).toMatch(/changed/);
    }
    expect((await rig.ask('GET', url, undefined, { as: undefined })).body).toBe('ours');
  });

  test('a link is refused after 15 minutes, and not found once the file is gone', async () => {
    await apply([completed({}, { fileId: 'gone.csv' }), 1]);
    const linkOf = (agoS: number) =>
      createResultLinks(rig.secrets, { now: () => new Date(Date.now() - agoS * 1_000) }).make(key);

    const expired = await rig.ask('GET', linkOf(15 * 60 + 2), undefined, { as: undefined });
    const gone = await rig.ask('GET', linkOf(14 * 60), undefined, { as: undefined });

    expect([expired.statusCode, problemOf(expired).detail]).toEqual([
      403,
      'The link has expired. Request the status of the test run again.',
    ]);
    expect(gone.statusCode).toBe(404);
  });

  test('while NATS is unreachable, the status is still returned, and the file is a 503', async () => {
    await using alone = await startRig(kind);
    await alone.addBot({ botId: 'b-1', accountId: 'acme' });
    const store = applyTestRuns(alone.database, { put: () => Promise.reject() }, clock);
    await store([{ bot: key, body: completed({}, { fileId: 'f' }), version: 1 }]);

    const response = await alone.ask('GET', statusPath(suite));
    const { fileUrl } = response.json<{ result: { fileUrl: string } }>().result;
    const file = await alone.ask('GET', fileUrl);

    expect([file.statusCode, file.headers['retry-after']]).toEqual([503, '5']);
  });

  test('no signature and no content of a file is ever logged', async () => {
    await apply([completed({ resultCsv: 'confidential-utterance' }), 1]);
    const url = await fileUrlOf();
    await rig.ask('GET', url);
    await rig.ask('GET', url.replace('expires=', 'expires=1'));

    expect(rig.logged()).not.toMatch(/signature=|confidential-utterance/);
  });

  test('every example of the OpenAPI document can be published, and is returned as its example', async () => {
    const { components, webhooks } = (await rig.ask('GET', '/openapi.json')).json<{
      components: { schemas: Record<string, { examples: PublishedTestRun[] }> };
      webhooks: Record<string, unknown>;
    }>();
    const examples = components.schemas['PublishedTestRunInput']?.examples ?? [];
    const [runningAnswer, completedAnswer] = components.schemas['TestRun']?.examples ?? [];
    expect(examples).toHaveLength(3);
    expect(webhooks).toHaveProperty('PublishedTestRun');

    for (const [index, example] of examples.entries()) {
      const run = { ...example, _id: `tr-example-${index}` } as PublishedTestRun;
      await published(run);
      const response = await rig.ask('GET', statusPath(run.testSuiteName, { id: run._id }));
      const answer = response.json<{ result: object }>();
      const expected = run.status === 'running' ? runningAnswer : completedAnswer;
      expect(Object.keys(answer).toSorted()).toEqual(Object.keys(expected ?? {}).toSorted());
      expect(Object.keys(answer.result).toSorted()).toEqual(
        Object.keys(expected?.result ?? {}).toSorted(),
      );
    }
  });
});
