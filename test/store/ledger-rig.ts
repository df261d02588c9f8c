// A ledger on a database that only this test file uses. The database is emptied after each test,
// and the test sets the clock.

import { afterEach, beforeEach } from 'vitest';
import type { AcceptedCall } from '../../src/calls/call-types.ts';
import type { CallStep } from '../../src/calls/life/call-step.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { owedFor } from '../../src/notifier/owed.ts';
import { type CallLedger, createCallLedger } from '../../src/store/calls/call-ledger.ts';
import type { Database } from '../../src/store/database.ts';
import {
  type AppendedStep,
  appendSteps,
  type WaitingStep,
} from '../../src/store/outbox/call-appends.ts';
import { createSecretBox } from '../../src/store/secrets.ts';
import { type databaseKinds, openTestDatabase, type TestDatabase } from '../support/databases.ts';
import { forSuite } from '../support/opened.ts';

export const noon = new Date('2026-03-01T12:00:00.000Z');
export const tomorrow = new Date('2026-03-02T12:00:00.000Z');

export type LedgerRig = {
  readonly database: TestDatabase;
  readonly ledger: CallLedger;
  /**
   * Opens another ledger on the same tables, like a second process, or on a database that
   * misbehaves.
   */
  readonly openLedger: (on?: Database) => CallLedger;
  /**
   * Takes one call at the time of the rig, and marks that its INVITE may have been sent. Returns
   * false if the call is already taken or has ended.
   */
  readonly take: (callId: string, ownerId: string) => Promise<boolean>;
  /** Appends a step as the outbox of a process does. */
  readonly append: (
    ownerId: string,
    call: AcceptedCall,
    step: Partial<CallStep>,
    how?: Partial<WaitingStep>,
  ) => Promise<AppendedStep>;
  readonly appendAll: (
    ownerId: string,
    steps: readonly WaitingStep[],
  ) => Promise<readonly AppendedStep[]>;
  /** Returns the events of a call, in order. */
  readonly eventsOf: (callId: string) => Promise<readonly string[]>;
  readonly notificationsOf: (callId: string) => Promise<readonly string[]>;
  /** Returns the number of calls that no process has taken. */
  readonly queuedCount: () => Promise<number>;
  readonly rowOf: (callId: string) => Promise<Record<string, unknown> | undefined>;
  readonly setNow: (now: Date) => void;
};

/** Registers the hooks. `use` gets a new rig before each test, at noon. */
export function eachWithLedger(
  kind: (typeof databaseKinds)[number],
  use: (rig: LedgerRig) => void,
): void {
  const secrets = createSecretBox(Buffer.alloc(32, 7));

  const database = forSuite(() => openTestDatabase(kind));

  beforeEach(() => {
    let now = noon;
    const openLedger = (on: Database = database) =>
      createCallLedger({
        database: on,
        secrets,
        logger: silentLogger,
        clock: { now: () => now },
      });
    const appendAll = (ownerId: string, steps: readonly WaitingStep[]) =>
      appendSteps(
        {
          pool: database.pool,
          ownerId,
          owedFor: (call, event) => owedFor(call, event, () => true),
          publishedThrough: () => undefined,
          now: () => now,
          leaseUntil: (at) => new Date(at.getTime() + 30_000),
          passRefusedAfterMs: 60_000,
        },
        steps,
      );
    const column = async (statement: string, callId: string) =>
      (await database.pool.query<{ value: string }>(statement, [callId])).rows.map(
        ({ value }) => value,
      );
    use({
      database,
      appendAll,
      append: async (ownerId, call, step, how = {}) => {
        const waiting = { call, isUntaken: false, isRepeated: false, ...how };
        const [result] = await appendAll(ownerId, [{ ...waiting, step: { events: [], ...step } }]);
        if (result === undefined) throw new Error('a step without a result');
        return result;
      },
      eventsOf: (callId) =>
        column(
          `select event_sequence || ' ' || type as value from call_events where call_id = $1 order by event_sequence`,
          callId,
        ),
      notificationsOf: (callId) =>
        column(
          `select sequence || ' ' || type as value from notifications join call_events using (day, call_id, event_sequence)
           where call_id = $1 order by sequence`,
          callId,
        ),
      ledger: openLedger(),
      openLedger,
      take: async (callId, ownerId) => {
        const { rowCount } = await database.pool.query(
          `update calls set dial_started_at = $3, owner_id = $2, state = 'dialing', status = 'dialing'
           where call_id = $1 and dial_started_at is null and ended_at is null`,
          [callId, ownerId, now],
        );
        return rowCount === 1;
      },
      queuedCount: async () =>
        (
          await database.pool.query(
            'select from calls where dial_started_at is null and ended_at is null',
          )
        ).rowCount ?? 0,
      rowOf: async (callId) =>
        (
          await database.pool.query<Record<string, unknown>>(
            'select * from calls where call_id = $1',
            [callId],
          )
        ).rows[0],
      setNow: (later) => {
        now = later;
      },
    });
  });

  afterEach(() => database.clear());
}
