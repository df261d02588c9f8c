// Notifications that one receiver is owed must not slow the others, so no statement of the notifier
// may read a whole table.

import { beforeAll, describe, expect, test } from 'vitest';
import {
  claimStatement,
  claimTheseStatement,
  loadStatement,
  settleStatement,
} from '../../src/notifier/notification-sql.ts';
import { dayOf } from '../../src/store/days.ts';
import { appendStatement } from '../../src/store/outbox/append-statement.ts';
import { databaseKinds, openTestDatabase } from '../support/databases.ts';
import { forSuite } from '../support/opened.ts';

const at = new Date('2026-11-20T08:00:00.000Z');
const day = dayOf(at);
const given = {
  event_id: 'evt-9-end',
  call_id: 'call-9',
  origin: 'https://hooks.example',
  sequence: 1,
  created_at: at,
  lease: true,
};
/** The parameters of the outbox for a call's end with its notification. */
function stepOf(number: number) {
  const call = { call_id: `call-${number}`, is_untaken: false, is_repeated: false };
  const event = {
    event_sequence: 2,
    event_id: `evt-${number}-end`,
    type: 'failed',
    time: at,
    data: {},
  };
  const ending = { at, event: {}, outcome: 'busy', status: 'failed', eventSequence: 2 };
  const rows = [[{ ...call, ending }], [{ ...call, ...event }], [{ ...given, lease: true }]];
  const [steps, events, owed] = rows.map((each) => JSON.stringify(each));
  return [steps, 'node-1', events, owed] as const;
}
const settled = { call_id: 'call-9', known: at, next: at, gone_at: at };

/** The rooms: by receiver, by account, and for unlisted accounts. */
const rooms = [
  ['acme'],
  ['https://dead.example'],
  [0],
  ['acme'],
  [100],
  [100],
  1_000,
  200,
] as const;

const statements = [
  [appendStatement(day, 'plain'), [...stepOf(9), at, at, at, '[]']],
  [claimStatement, ['node-1', at, at, 200, ...rooms]],
  [claimTheseStatement, ['node-1', at, at, ['call-9']]],
  [loadStatement(day), [['call-9'], 'node-1']],
  [settleStatement(day), [JSON.stringify([given]), JSON.stringify([settled]), 'node-1']],
] as const;

describe.each(databaseKinds)('plans of the notifier, on %s', (kind) => {
  const planOf = async ([{ text }, values]: (typeof statements)[number]): Promise<string> => {
    const { rows } = await database.pool.query<{ 'QUERY PLAN': string }>(`explain ${text}`, [
      ...values,
    ]);
    return rows.map((row) => row['QUERY PLAN']).join('\n');
  };
  const plansOnEmpty = new Map<string, string>();
  const database = forSuite(() => openTestDatabase(kind, { own: true }));
  beforeAll(async () => {
    for (const each of statements) plansOnEmpty.set(each[0].name, await planOf(each));
    await database.pool.query(
      `insert into notifications (day, event_id, call_id, account_id, bot_id, sequence, event_sequence, state, attempts, created_at)
       select '${day}', 'evt-' || n, 'call-' || n, 'acme', 'st-1', 1, 2, 'pending', 0, now()
       from generate_series(1, 5000) n`,
    );
    await database.pool.query(
      `insert into notification_lanes (call_id, day, account_id, origin, next_attempt_at)
       select 'call-' || n, '${day}', 'acme', 'https://dead.example', now() from generate_series(1, 5000) n`,
    );
  });

  test.each(statements)('$name uses only indexes', async (statement, values) => {
    const plan = await planOf([statement, values] as (typeof statements)[number]);
    expect(plan).toMatch(/Index.* Scan/);
    expect(plan).not.toMatch(/Seq Scan on (notifications|notification_lanes|delivery_attempts)/);
  });

  // A connection keeps the plans that it made when the first call arrived.
  test.each(statements)('$name uses only indexes, planned on an empty database', ({ name }) => {
    expect(plansOnEmpty.get(name)).toMatch(/Index.* Scan/);
    expect(plansOnEmpty.get(name)).not.toMatch(/Seq Scan on (notifications|delivery_attempts)/);
  });
});
