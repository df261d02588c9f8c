// Limits of an app, from the intake to SQL.

import { afterEach, describe, expect, test } from 'vitest';
import { createIntake } from '../../src/dialout/intake.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { acceptedCall } from '../support/call-records.ts';
import { databaseKinds, openTestDatabase } from '../support/databases.ts';
import { openLedger } from '../support/ledger.ts';
import { forSuite } from '../support/opened.ts';

const evening = new Date('2026-03-01T23:00:00.500Z');

describe.each(databaseKinds)('the intake of an app with limits, on %s', (kind) => {
  const database = forSuite(() => openTestDatabase(kind));
  afterEach(() => database.clear());

  function openIntake() {
    const clock = { now: () => evening };
    const ledger = openLedger(database, clock.now);
    return createIntake(
      {
        ledger,
        taking: {
          accepted: () => undefined,
          takeAlong: () => undefined,
          waiting: () => new Map(),
        },
        limitsOf: () => undefined,
        queuedNotification: () => undefined,
        onStored: () => undefined,
        isStopping: () => false,
        clock,
        logger: silentLogger,
      },
      { maxQueued: 100, queueTimeoutMs: 300_000 },
    );
  }

  const submission = {
    appId: 'app-1',
    accountId: 'account-1',
    botId: 'bot-1',
    request: acceptedCall().request,
  };

  test('refuses a number that the app may not dial, with and without a key', async () => {
    const intake = openIntake();
    const limits = { deniedPrefixes: ['1', '2', '3', '4', '5', '6', '7', '8', '9'] };

    expect([
      await intake.submit({ ...submission, limits }),
      await intake.submit({
        ...submission,
        limits,
        idempotency: { key: 'key-1', requestHash: 'hash-1' },
      }),
    ]).toEqual([{ kind: 'target-forbidden' }, { kind: 'target-forbidden' }]);
    expect((await database.pool.query('select from calls')).rowCount).toBe(0);
  });

  test('asks to retry soon over concurrent calls, and after midnight UTC over calls per day', async () => {
    const intake = openIntake();
    await intake.submit({ ...submission, limits: { callsPerDay: 1 } });

    expect(await intake.submit({ ...submission, limits: { callsPerDay: 1 } })).toEqual({
      kind: 'limit-reached',
      limit: 'callsPerDay',
      retryAfterS: 3_600,
    });
    expect(await intake.submit({ ...submission, limits: { callsAtOnce: 1 } })).toEqual({
      kind: 'limit-reached',
      limit: 'callsAtOnce',
      retryAfterS: 5,
    });
    expect(await intake.submit(submission)).toMatchObject({ kind: 'accepted' });
  });
});
