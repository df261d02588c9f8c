// A request that came before keeps its answer, even if the intake accepts no new request.

import { afterEach, describe, expect, test } from 'vitest';
import { createIntake } from '../../src/dialout/intake.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { acceptedCall } from '../support/call-records.ts';
import { databaseKinds, openTestDatabase } from '../support/databases.ts';
import { openLedger } from '../support/ledger.ts';
import { forSuite } from '../support/opened.ts';

const noon = new Date('2026-03-01T12:00:00.000Z');
const tomorrow = new Date('2026-03-02T12:00:00.000Z');

describe.each(databaseKinds)('a request with a key, on %s', (kind) => {
  const database = forSuite(() => openTestDatabase(kind));
  afterEach(() => database.clear());

  function open() {
    const state = { now: noon, waiting: 0, isStopping: false, isAway: false };
    const clock = { now: () => state.now };
    const ledger = openLedger(database, clock.now);
    const intake = createIntake(
      {
        ledger: {
          accept: (...call) => ledger.accept(...call),
          earlier: async (...asked) => {
            if (state.isAway) throw new Error('SQL is unreachable');
            return await ledger.earlier(...asked);
          },
        },
        taking: {
          accepted: () => undefined,
          takeAlong: () => undefined,
          waiting: () => new Map([[undefined, state.waiting]]),
        },
        limitsOf: () => undefined,
        queuedNotification: () => undefined,
        onStored: () => undefined,
        isStopping: () => state.isStopping,
        clock,
        logger: silentLogger,
      },
      { maxQueued: 3, queueTimeoutMs: 300_000 },
    );
    return { intake, state };
  }

  const submission = {
    appId: 'app-1',
    accountId: 'account-1',
    botId: 'bot-1',
    request: acceptedCall().request,
  };
  const keyed = { ...submission, idempotency: { key: 'key-1', requestHash: 'hash-1' } };
  const other = { ...submission, idempotency: { key: 'key-1', requestHash: 'hash-2' } };
  const strange = { ...submission, idempotency: { key: 'key-2', requestHash: 'hash-1' } };

  test.each([
    ['the queue is full', { waiting: 3 }, 'full', 'full'],
    // With a key: its first request may be being stored at that moment.
    ['the process stops', { isStopping: true }, 'unavailable', 'unknown'],
  ])('gets its first answer again while %s', async (_, change, kindWithoutKey, kindWithKey) => {
    const refusal = { kind: kindWithoutKey, retryAfterS: 5 };
    const refusalOfKey = { kind: kindWithKey, retryAfterS: 5 };
    const { intake, state } = open();
    const first = await intake.submit(keyed);
    Object.assign(state, change);

    expect(first.kind).toBe('accepted');
    expect(await intake.submit(keyed)).toEqual({ ...first, kind: 'replayed' });
    expect(await intake.submit(other)).toEqual({ kind: 'conflict' });
    expect(await intake.submit(strange)).toMatchObject(refusalOfKey);
    expect(await intake.submit({ ...keyed, botId: 'bot-2' })).toMatchObject(refusalOfKey);
    expect(await intake.submit(submission)).toMatchObject(refusal);

    state.isAway = true;
    expect(await intake.submit(keyed)).toMatchObject({ kind: 'unknown' });
    expect(await intake.submit(submission)).toMatchObject(refusal);

    // As after the end of the call.
    await database.pool.query('update idempotency_keys set expires_at = $1', [tomorrow]);
    Object.assign(state, { isAway: false, now: tomorrow });
    expect(await intake.submit(keyed)).toMatchObject(refusalOfKey);
    expect((await database.pool.query('select from calls')).rowCount).toBe(1);
  });
});
