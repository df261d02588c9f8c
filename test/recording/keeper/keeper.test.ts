// The keeper stores each recording exactly once and says so exactly once, whatever dies or fails.

import { buffer } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Done } from '../../../src/recording/store/recording-store.ts';
import { databaseKinds, openTestDatabase } from '../../support/databases.ts';
import { forSuite } from '../../support/opened.ts';
import { rowsIn } from '../../support/tables.ts';
import { createRig, type KeeperRig, mortal, settleCall, untilIdle } from './keeper-rig.ts';

const hourMs = 3_600_000;

describe.each(databaseKinds)('a keeper on %s', (kind) => {
  const database = forSuite(() => openTestDatabase(kind));
  let rig: KeeperRig;

  beforeEach(async () => {
    rig = await createRig(database);
    await rig.addNode('node-1/a');
  });
  afterEach(() => rig.remove());

  const eventsOf = async (callId: string) =>
    (await rowsIn(database.pool, 'call_events'))
      .filter((row) => row['call_id'] === callId)
      .map((row) => [row['type'], row['event_sequence'], row['event_id']]);
  const stored = async (callId: string) => {
    const found = await rig.store.read(`account-1/2026/11/28/${callId}.wav`);
    return found.kind === 'found' ? (await buffer(found.content)).toString() : found.kind;
  };

  test('stores a recording, appends its event to the settled call, and empties the spool', async () => {
    const callId = await rig.endedCall({ recording: { notifyUrl: 'https://crm.example/r' } });
    const spooled = await rig.spool(callId);
    const { keeper, outcomes, announce, rows } = rig.start('node-1/a');
    if (spooled !== undefined) keeper.take(spooled);
    await untilIdle(keeper);
    await announce();
    expect(await stored(callId)).toBe(`audio of ${callId}`);
    expect(await rig.spooledFolders()).toEqual([]);
    const id = `evt-${callId.slice(5)}-9`;
    expect(await eventsOf(callId)).toEqual([['recording-stored', 9, id]]);
    expect(rig.published).toMatchObject([
      {
        ...{ id, type: 'recording-stored', eventSequence: 9, callId, botId: 'bot-1' },
        data: {
          ...{ durationMs: 12_000, pausedMs: 0, bytes: spooled?.bytes, sha256: spooled?.sha256 },
          where: rig.store.locationOf(`account-1/2026/11/28/${callId}.wav`),
        },
      },
    ]);
    const row = await rows.find(callId);
    expect(row).toMatchObject({ state: 'stored', isIncomplete: false });
    expect(row?.expiresAt).toEqual(new Date('2026-12-28T12:00:12Z'));
    expect(outcomes).toEqual([{ kind: 'stored', accountId: 'account-1', callId }]);
    expect(await rowsIn(database.pool, 'recording_notices')).toMatchObject([
      { event_id: id, state: 'pending', attempts: 0 },
    ]);
  });

  test('waits with the event until the call is settled, and keeps what the request says', async () => {
    const callId = await rig.endedCall({ recording: { retentionDays: 2 } }, { isSettled: false });
    await rig.spool(callId);
    const process = rig.start('node-1/a');
    await process.look();
    await process.announce();
    expect(await eventsOf(callId)).toEqual([]);
    expect(await process.rows.find(callId)).toMatchObject({
      ...{ state: 'stored', expiresAt: new Date('2026-11-30T12:00:12Z') },
    });
    await settleCall(database, callId);
    // Any node may announce it.
    await rig.start('node-2/b').announce();
    await process.announce();
    expect((await eventsOf(callId)).length).toBe(1);
    expect(rig.published.length).toBe(1);
  });

  test('that dies at any step leaves a recording that the next process stores and announces once', async () => {
    let step = 0;
    for (let hasDied = true; hasDied; ) {
      step += 1;
      for (const how of ['before', 'after'] as const) {
        const callId = await rig.endedCall();
        const first = `node-1/${step}${how}`;
        await rig.addNode(first);
        await rig.spool(callId, { ownerId: first, isFinished: step % 2 === 0 });
        const death = mortal(step, how);
        const dying = rig.start(first, {
          rows: death.guard(rig.start(first).rows),
          thread: { ...death.guard(rig.threadOf()), onFinished: () => undefined },
          uploads: death.guard(rig.uploads),
        });
        await dying.look().catch(() => undefined);
        hasDied = death.died();

        await rig.addNode(first, new Date());
        await rig.addNode('node-1/next');
        const next = rig.start('node-1/next');
        await next.look();
        await next.announce();
        const where = `${how} step ${step}`;
        expect(await stored(callId), where).toBe(`audio of ${callId}`);
        expect((await eventsOf(callId)).length, where).toBe(1);
        expect(rig.published.filter((event) => event.callId === callId).length, where).toBe(1);
        expect(await rig.spooledFolders(), where).toEqual([]);
      }
    }
    expect(step).toBeGreaterThan(5);
  });

  test('leaves the folder of a living node, and takes that of a lost one after ten minutes', async () => {
    const callId = await rig.endedCall();
    await rig.spool(callId, { ownerId: 'node-2/b', isFinished: false });
    await rig.addNode('node-2/b');
    const look = async () => {
      await rig.start('node-1/a').look();
      return await stored(callId);
    };
    expect(await look()).toBe('missing');
    await rig.addNode('node-2/b', rig.now());
    expect(await look()).toBe('missing');
    rig.pass(10 * 60_000);
    expect(await look()).toBe(`audio of ${callId}`);
    const other = rig.start('node-3/c');
    await other.look();
    expect(await other.rows.find(callId)).toMatchObject({ isIncomplete: true, state: 'stored' });
  });

  test('tries again after growing pauses, stores at once when the store is back, or gives up', async () => {
    const callId = await rig.endedCall();
    const spooled = await rig.spool(callId);
    let fault: Done = {
      ok: false,
      fault: {
        kind: 'refused',
        code: 'InvalidAccessKeyId',
        detail: 'refused (InvalidAccessKeyId)',
      },
    };
    const uploads = {
      put: async (...upload: Parameters<typeof rig.uploads.put>) =>
        fault.ok ? await rig.uploads.put(...upload) : fault,
    };
    const { keeper, outcomes, rows } = rig.start('node-1/a', { uploads });
    const attemptsAfter = async (ms: number) => {
      rig.pass(ms);
      keeper.sweep();
      await keeper.settled();
      return outcomes.length;
    };
    if (spooled !== undefined) keeper.take(spooled);
    expect(await attemptsAfter(0)).toBe(1);
    expect(await attemptsAfter(1_999)).toBe(1);
    expect(await attemptsAfter(1)).toBe(2);
    expect(await attemptsAfter(9_999)).toBe(2);
    expect(await attemptsAfter(1)).toBe(3);
    expect(outcomes.at(-1)).toEqual({
      ...{ kind: 'waiting', accountId: 'account-1', callId, attempts: 3 },
      ...{ reason: 'store-refused', detail: 'refused (InvalidAccessKeyId)' },
    });
    expect(await rows.find(callId)).toMatchObject({ state: 'storing', attempts: 3 });
    fault = { ok: true };
    keeper.retryNow();
    await untilIdle(keeper);
    expect(await stored(callId)).toBe(`audio of ${callId}`);

    const lostId = await rig.endedCall();
    fault = { ok: false, fault: { kind: 'full', code: 'QuotaExceeded', detail: 'is full' } };
    const lost = await rig.spool(lostId);
    if (lost !== undefined) keeper.take(lost);
    await attemptsAfter(0);
    for (let hour = 0; hour < 25; hour += 1) await attemptsAfter(hourMs);
    expect(outcomes.at(-1)).toMatchObject({ kind: 'failed', reason: 'store-full', callId: lostId });
    expect(await eventsOf(lostId)).toMatchObject([['recording-failed', 9, expect.any(String)]]);
    // An operator may still save it, until it expires.
    expect((await rig.spooledFolders()).length).toBe(1);
    await rig.start('node-1/a').look();
    expect((await rig.spooledFolders()).length).toBe(1);
    rig.pass(31 * 24 * hourMs);
    await rig.start('node-1/a').look();
    expect(await rig.spooledFolders()).toEqual([]);
  });

  test('keeps the segments while the disk is full or the key does not open', async () => {
    const callId = await rig.endedCall();
    const encryption = {
      ...{ keyName: 'crm', sealedContentKey: 'sealed' },
      wrapped: { algorithm: 'RSA-OAEP-256', key: 'wrapped' },
    };
    await rig.spool(callId, { ownerId: 'node-1/old', isFinished: false, changes: { encryption } });
    const locked = rig.start('node-1/a', {
      openContentKey: () => {
        throw new Error('sealed with another key');
      },
    });
    await locked.look();
    expect(locked.outcomes).toMatchObject([{ reason: 'key', detail: 'sealed with another key' }]);
    const full = rig.start('node-1/a', {
      thread: {
        ...rig.threadOf(),
        finish: async () => ({ fault: 'disk-full', detail: 'no space' }),
      },
    });
    await full.look();
    expect(full.outcomes).toMatchObject([{ reason: 'disk-full', attempts: 2 }]);
    await rig.start('node-1/a').look();
    expect(await stored(callId)).toBe(`audio of ${callId}`);
  });
});
