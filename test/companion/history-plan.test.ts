// The history is read by an index, in the order of the response, however much is stored.

import { beforeAll, describe, expect, test } from 'vitest';
import type { HistoryQuery } from '../../src/companion/history/history-request.ts';
import { toHistoryQuery } from '../../src/companion/history/history-request.ts';
import {
  botsStatement,
  countStatement,
  pageStatement,
  positionStatement,
  sessionsStatement,
} from '../../src/companion/history/history-statements.ts';
import type { Sql } from '../../src/store/sql.ts';
import { databaseKinds, openTestDatabase } from '../support/databases.ts';
import { forSuite } from '../support/opened.ts';
import { planOf } from '../support/plan-of.ts';

const scope = { accountId: 'acme', botIds: ['st-1'] };
const console = { accountId: 'acme', botIds: ['st-1', 'st-2', 'st-3'] };
const now = new Date('2026-11-20T10:00:00Z');
const part = { way: 'older', now, rows: 1_000 } as const;
const start = { at: '2026-11-20 09:00:00.000+00', message_id: 'ms-1', included: true };
const week = { dateFrom: '2026-11-14', dateTo: '2026-11-20' };

type Asked = Parameters<typeof toHistoryQuery>[2];
const asked = (body: Asked = {}): HistoryQuery => toHistoryQuery(2, {}, body);

const statements: readonly (readonly [string, Sql])[] = [
  ['the page of a bot', pageStatement(scope, asked(), part)],
  ['its next chunk', pageStatement(scope, asked(), { ...part, start })],
  ['oldest first', pageStatement(scope, asked(), { ...part, way: 'newer' })],
  ['a week', pageStatement(scope, asked(week), part)],
  ['a user', pageStatement(scope, asked({ userId: 'u-1' }), part)],
  ['a user from a message on', pageStatement(scope, asked({ userId: 'u-1' }), { ...part, start })],
  ['sessions', pageStatement(scope, asked({ sessionId: ['ss-1', 'ss-2'] }), part)],
  ['a call', pageStatement(scope, asked({ callId: 'call-1' }), part)],
  ['tags', pageStatement(scope, asked({ tags: { campaign: 'rare' } }), part)],
  ['without some sessions', pageStatement(scope, asked(), { ...part, skipped: ['ss-1'] })],
  ['the page of an account', pageStatement(console, asked(), part)],
  ['the sessions to skip', sessionsStatement(scope, asked(), { ...part, sessions: 10 })],
  ['the message to start from', positionStatement(console, 'ms-1')],
  ['the bots of an account', botsStatement('acme')],
  ['the total of a bot', countStatement(scope, asked())],
  ['the total of a user', countStatement(scope, asked({ userId: 'u-1' }))],
  ['the total of a week', countStatement(scope, asked(week))],
  ['the total of a session', countStatement(scope, asked({ sessionId: ['ss-1'] }))],
];

describe.each(databaseKinds)('plans of the history on %s', (kind) => {
  const database = forSuite(() => openTestDatabase(kind, { own: true }));
  beforeAll(async () => {
    // Three bots in each of three accounts, so that each bot has a ninth of the messages.
    await database.pool.query(`
      insert into messages
      select case i % 3 when 0 then 'acme' else 'acct-' || i % 3 end, 'st-' || i / 3 % 3 + 1, 'ms-' || i, i,
        timestamptz '2026-11-20 09:30:00+00' - i * interval '1 minute', 'u-' || i % 100, 'ss-' || i / 16, 'rtm',
        case when i % 100 = 0 then 'call-' || i end, i % 50 = 0,
        case when i % 500 = 0 then '{"campaign":"rare"}' else '{"campaign":"spring"}' end::jsonb,
        repeat('x', 300), null, null, null
      from generate_series(1, 9000) i`);
  });

  // First with tables that were never analysed, as in PGlite.
  describe.each(['as they are', 'analysed'])('tables %s', (state) => {
    beforeAll(async () => {
      if (state === 'analysed') await database.pool.query('analyze messages, message_counts');
    });

    test.each(statements)('%s is read by an index', async (_what, statement) => {
      const plan = await planOf(database.pool, statement);

      expect(plan).toMatch(/Index (Only )?Scan|Bitmap Index Scan/);
      expect(plan).not.toContain('Seq Scan on messages');
    });
  });
});
