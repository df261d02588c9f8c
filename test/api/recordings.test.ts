// Recordings over HTTP: reading a whole one and parts of it, links, and deletion.

import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createCallQueries } from '../../src/interactions/stored-calls.ts';
import type { StoredRecordings } from '../../src/recording/recordings.ts';
import { type Rig, startRig, type TestApp } from '../companion/support.ts';
import { acceptedCall } from '../support/call-records.ts';
import { databaseKinds, openTestDatabase } from '../support/databases.ts';
import { forSuite } from '../support/opened.ts';
import { startTestRecordings } from '../support/recordings.ts';
import { startTestS3 } from '../support/s3-server.ts';
import { insertRows } from '../support/tables.ts';

const recordings = forSuite(startTestRecordings);
const content = Buffer.from('RIFF and some audio');

describe.each(databaseKinds)('…/calls/{callId}/recording on %s', (kind) => {
  let services: StoredRecordings;
  const rig: Rig = forSuite(() =>
    startRig(kind, {
      services: async ({ database }) => {
        services = recordings.servicesOf(database);
        return { recordings: services, calls: createCallQueries(database) };
      },
    }),
  );
  let call: ReturnType<typeof acceptedCall>;
  const addCall = async () => {
    call = acceptedCall({ accountId: 'acme', botId: 'st-1' });
    const at = call.acceptedAt;
    await insertRows(rig.database.pool, 'calls', [
      {
        ...{ ...call, state: 'ended', status: 'completed', dialBefore: at, endedAt: at },
        ...{ outcome: 'completed', endPublishedAt: at, lastEventSequence: 8 },
      },
    ]);
  };
  beforeAll(() => rig.addBot({ botId: 'st-1', accountId: 'acme' }));
  beforeEach(addCall);
  afterEach(() => rig.clear());

  const url = (query = '') => `/api/public/bot/st-1/calls/${call.callId}/recording${query}`;
  const get = (query = '', headers: Record<string, string> = {}, as?: TestApp) =>
    rig.ask('GET', url(query), undefined, { headers, ...(as === undefined ? {} : { as }) });

  test('returns the file, and the part that Range selects', async () => {
    await recordings.add(rig.database, call, content);
    const whole = await get();
    expect([whole.statusCode, whole.headers['content-type'], whole.rawPayload]).toEqual([
      ...[200, 'audio/wav', content],
    ]);
    expect(whole.headers).toMatchObject({ 'accept-ranges': 'bytes', 'content-length': '19' });
    expect(whole.headers['offhook-key']).toBeUndefined();
    const parts = [
      ...[
        ['bytes=5-7', 206, 'and', 'bytes 5-7/19'],
        ['bytes=14-', 206, 'audio', 'bytes 14-18/19'],
      ],
      ...[
        ['bytes=-5', 206, 'audio', 'bytes 14-18/19'],
        ['bytes=9-99', 206, 'some audio', 'bytes 9-18/19'],
      ],
      ...[['lines=1-2', 200, content.toString(), undefined]],
      ...[['bytes=0-1,5-6', 200, content.toString(), undefined]],
    ] as const;
    for (const [range, status, text, place] of parts) {
      const part = await get('', { range });
      expect([part.statusCode, part.payload, part.headers['content-range']], range).toEqual([
        ...[status, text, place],
      ]);
    }
    const beyond = await get('', { range: 'bytes=19-' });
    expect([beyond.statusCode, beyond.headers['content-range']]).toEqual([416, 'bytes */19']);
    const head = await rig.ask('HEAD', url());
    expect([head.statusCode, head.headers['content-length'], head.payload]).toEqual([
      200,
      '19',
      '',
    ]);
  });

  test('returns an encrypted recording as it is, with the name of its key', async () => {
    await recordings.add(rig.database, call, content, { keyName: 'crm-2026' });
    const { headers } = await get();
    expect(headers).toMatchObject({
      ...{ 'content-type': 'application/octet-stream', 'offhook-key': 'crm-2026' },
      'content-disposition': `attachment; filename="${call.callId}.wav.enc"`,
    });
  });

  test('is 404 for others, 409 until it is stored, and says why there is none', async () => {
    const statusOf = async () => {
      const { statusCode, payload } = await get();
      return [statusCode, (JSON.parse(payload) as { detail: string }).detail];
    };
    expect(await statusOf()).toEqual([404, 'The call has no recording.']);
    await insertRows(rig.database.pool, 'call_events', [
      {
        ...{ day: call.acceptedAt.toISOString().slice(0, 10), callId: call.callId },
        ...{ eventId: 'evt-1', eventSequence: 2, type: 'recording-started' },
        ...{ time: call.acceptedAt, data: {} },
      },
    ]);
    expect(await statusOf()).toEqual([409, 'The recording is not stored yet.']);
    // Until the call is settled, a recording may still be under way.
    await rig.database.pool.query('update calls set end_published_at = null');
    expect((await rig.ask('DELETE', url())).statusCode).toBe(409);
    await recordings.add(rig.database, call, content, { state: 'failed', fault: 'store-full' });
    expect(await statusOf()).toEqual([404, 'The recording was not stored: store-full.']);
    expect((await get('', {}, rig.rival)).statusCode).toBe(404);
    expect((await get('', {}, rig.powerless)).statusCode).toBe(403);
  });

  test('is deleted from the store, and the call says when and by whom', async () => {
    await recordings.add(rig.database, call, content);
    expect((await rig.ask('DELETE', url(), undefined, { as: rig.rival })).statusCode).toBe(404);
    for (const times of ['once', 'again']) {
      const { statusCode, payload } = await rig.ask('DELETE', url());
      expect([statusCode, JSON.parse(payload)], times).toEqual([
        ...[200, { callId: call.callId, removed: true }],
      ]);
    }
    const name = `acme/2026/11/28/${call.callId}`;
    expect(await recordings.store.read(`${name}.wav`)).toEqual({ kind: 'missing' });
    expect(await recordings.store.read(`${name}.json`)).toEqual({ kind: 'missing' });
    expect((await get()).statusCode).toBe(404);
    const details = await rig.ask('GET', `/api/public/bot/st-1/calls/${call.callId}`);
    expect((JSON.parse(details.payload) as { recording: object }).recording).toMatchObject({
      ...{ state: 'stored', durationMs: 12_000, deletedBy: rig.acme.appId },
      deletedAt: expect.any(String),
    });
  });

  test('is linked only in a bucket, for an hour at most', async () => {
    await recordings.add(rig.database, call, content);
    expect((await get('?link=5m')).statusCode).toBe(400);
    expect((await get('?link=2h')).statusCode).toBe(400);
  });
});

test('a link to a bucket needs no credentials', async () => {
  await using database = await openTestDatabase('pglite');
  const s3 = await startTestS3();
  const inBucket = await startTestRecordings(s3.target);
  const call = acceptedCall({ accountId: 'acme', botId: 'st-1' });
  await inBucket.add(database, call, content);
  const services = inBucket.servicesOf(database);
  const found = await services.find({ accountId: 'acme', botId: 'st-1' }, call.callId);
  const link = found.kind === 'stored' ? await services.link?.(found.row, 300) : undefined;
  expect(await (await fetch(link ?? '')).text()).toBe(content.toString());
  await inBucket.stop();
  await s3.stop();
});

test('expired recordings are deleted, and those that the store keeps are reported', async () => {
  await using database = await openTestDatabase('pglite');
  const ids = ['call-1', 'call-2', 'call-3'];
  for (const callId of ids) {
    const expiresAt = callId === 'call-3' ? '2036-01-01T00:00:00Z' : '2026-01-01T00:00:00Z';
    await recordings.add(database, { callId, accountId: 'acme', botId: 'b' }, content, {
      expiresAt,
    });
  }
  const fault = { kind: 'refused', code: 'AccessDenied', detail: 'may not delete' } as const;
  const failing = recordings.removalOf(database, {
    ...recordings.store,
    remove: async (name) =>
      name.includes('call-1') ? { ok: false, fault } : await recordings.store.remove(name),
  });
  const { signal } = new AbortController();
  expect(await failing.expire(signal)).toEqual({ deleted: 1, undeleted: 1 });
  expect(await recordings.removalOf(database).expire(signal)).toEqual({ deleted: 1, undeleted: 0 });
  const { rows } = await database.pool.query(
    'select call_id, deleted_by, deletion_fault from recordings order by call_id',
  );
  expect(rows).toEqual([
    { call_id: 'call-1', deleted_by: 'retention', deletion_fault: null },
    { call_id: 'call-2', deleted_by: 'retention', deletion_fault: null },
    { call_id: 'call-3', deleted_by: null, deletion_fault: null },
  ]);
});
