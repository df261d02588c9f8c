// Deleted recordings leave nothing in the store, whatever had become of them by then.

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { silentLogger } from '../../src/lib/logger.ts';
import { createStoredRecordings } from '../../src/recording/recordings.ts';
import { createRemoval, type Removal } from '../../src/recording/removal.ts';
import { RecordingReads } from '../../src/store/recordings/recording-reads.ts';
import { databaseKinds, openTestDatabase } from '../support/databases.ts';
import { forSuite } from '../support/opened.ts';
import { insertRows } from '../support/tables.ts';
import { createRig, type KeeperRig, untilIdle } from './keeper/keeper-rig.ts';

const accountId = 'account-1';
const number = '14155550100';
const byPerson = 'person';

describe.each(databaseKinds)('the removal of recordings on %s', (kind) => {
  const database = forSuite(() => openTestDatabase(kind));
  let rig: KeeperRig;
  let removal: Removal;
  let reads: RecordingReads;

  beforeEach(async () => {
    await database.pool.query('truncate calls, call_events, recordings cascade');
    rig = await createRig(database);
    await rig.addNode('node-1/a');
    reads = new RecordingReads(database.pool, rig.now);
    removal = createRemoval({ reads, store: rig.store, logger: silentLogger });
  });
  afterEach(() => rig.remove());

  const isStored = async (callId: string): Promise<boolean> => {
    const found = await rig.store.read(`${accountId}/2026/11/28/${callId}.wav`);
    if (found.kind === 'found') found.content.destroy();
    return found.kind === 'found';
  };
  const rowOf = (callId: string) => reads.find({ accountId }, callId);

  /** A settled call to the number, whose recording lies in the spool. */
  async function recordedCall() {
    const callId = await rig.endedCall();
    const { rows } = await database.pool.query(
      'select day::text as day from calls where call_id = $1',
      [callId],
    );
    await insertRows(database.pool, 'call_events', [
      {
        ...{ callId, day: rows[0]?.['day'], eventSequence: 4, eventId: `${callId}-4` },
        ...{ type: 'recording-started', time: rig.now(), data: {} },
      },
    ]);
    return { callId, spooled: await rig.spool(callId) };
  }

  async function stored() {
    const { callId, spooled } = await recordedCall();
    const { keeper } = rig.start('node-1/a');
    if (spooled !== undefined) keeper.take(spooled);
    await untilIdle(keeper);
    expect(await isStored(callId)).toBe(true);
    return callId;
  }

  test('discards what nobody has begun to store', async () => {
    const { callId, spooled } = await recordedCall();

    expect(await removal.removePerson(accountId, number)).toBe(1);
    const { keeper } = rig.start('node-1/a');
    if (spooled !== undefined) keeper.take(spooled);
    await untilIdle(keeper);

    expect(await isStored(callId)).toBe(false);
    expect(await rig.spooledFolders()).toEqual([]);
    expect(await rowOf(callId)).toMatchObject({ deletedBy: byPerson });
    expect(await removal.removePerson(accountId, number)).toBe(0);
  });

  test('discards on request what nobody has begun to store', async () => {
    const { callId } = await recordedCall();
    const recordings = createStoredRecordings(reads, rig.store, removal);
    const other = { accountId, botId: 'bot-2' };
    expect(await recordings.remove(other, callId, 'app-1')).toBe('unknown');

    expect(await recordings.remove({ accountId }, callId, 'app-1')).toEqual({ ok: true });

    expect(await recordings.find({ accountId }, callId)).toMatchObject({
      ...{ kind: 'deleted', by: 'app-1' },
    });
  });

  test('removes a recording that was stored after it was read', async () => {
    const callId = await stored();
    const row = await rowOf(callId);
    if (row === undefined) throw new Error('no row');

    expect(await removal.remove({ ...row, state: 'storing' }, 'app-1')).toEqual({ ok: true });

    expect(await isStored(callId)).toBe(false);
    expect(await rowOf(callId)).toMatchObject({ deletedBy: 'app-1' });
  });

  test('removes the audio of a recording whose metadata could not be stored', async () => {
    const callId = await stored();
    await database.pool.query(`update recordings set state = 'failed' where call_id = $1`, [
      callId,
    ]);

    expect(await removal.removePerson(accountId, number)).toBe(1);

    expect(await isStored(callId)).toBe(false);
  });
});
