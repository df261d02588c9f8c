// The totals of calls, which settling keeps up to date.

import { describe, expect, test } from 'vitest';
import type { AcceptedCall } from '../../../src/calls/call-types.ts';
import { silentLogger } from '../../../src/lib/logger.ts';
import { Settling } from '../../../src/store/outbox/settling.ts';
import { acceptedCall, answeredEventOf, endEventOf } from '../../support/call-records.ts';
import { databaseKinds } from '../../support/databases.ts';
import { eachWithLedger, type LedgerRig } from '../ledger-rig.ts';

describe.each(databaseKinds)('the totals of calls on %s', (kind) => {
  let rig: LedgerRig;
  eachWithLedger(kind, (made) => {
    rig = made;
  });

  /** Accepts a call and ends it, as the process `a`. */
  async function ended(
    end: Parameters<typeof endEventOf>[1],
    { answeredAt, ...changes }: Partial<AcceptedCall> & { readonly answeredAt?: string } = {},
  ): Promise<AcceptedCall> {
    const call = acceptedCall(changes);
    await rig.ledger.accept(call, {});
    await rig.take(call.callId, 'a');
    if (answeredAt !== undefined) {
      const step = {
        events: [answeredEventOf(call, answeredAt)],
        answeredAt: new Date(answeredAt),
      };
      await rig.append('a', call, step);
    }
    await rig.append('a', call, { ending: { event: endEventOf(call, end) } });
    return call;
  }

  async function settle(ownerId: string, calls: readonly AcceptedCall[]): Promise<void> {
    const settling = new Settling(rig.database.pool, ownerId, () => false, silentLogger);
    for (const { callId } of calls) settling.settle(callId);
    await settling.stop();
  }

  async function totals() {
    const { rows } = await rig.database.pool.query<Record<string, unknown>>(
      `select account_id, bot_id, trunk, to_char(slot at time zone 'UTC', 'HH24:MI') as slot, outcome, status, verdict,
         calls, answered, short, talk_ms::integer from call_totals order by slot, outcome, verdict, bot_id`,
    );
    return rows;
  }

  const common = { account_id: 'account-1', bot_id: 'bot-1', trunk: 'sandbox', slot: '10:00' };

  test('have a row for each bot, trunk, quarter of an hour, outcome, status and verdict', async () => {
    const person = { outcome: 'completed', machineDetection: 'amd_human_detected' } as const;
    const answeredAt = '2026-03-01T10:00:30.456Z';
    const busy = { type: 'failed', outcome: 'busy' } as const;
    const { trunk: _trunk, ...direct } = acceptedCall().request;
    const calls = [
      await ended(person, { answeredAt }),
      await ended(person, { answeredAt, acceptedAt: new Date('2026-03-01T10:00:00.000Z') }),
      await ended(busy, { acceptedAt: new Date('2026-03-01T10:14:59.999Z') }),
      await ended(busy, { acceptedAt: new Date('2026-03-01T10:15:00.000Z') }),
      await ended(busy, { botId: 'bot-2', request: direct }),
    ];

    await settle('a', calls);

    const unanswered = { status: 'failed', outcome: 'busy', verdict: '', answered: 0 };
    const silent = { short: 0, talk_ms: 0 };
    expect(await totals()).toEqual([
      { ...common, ...unanswered, ...silent, calls: 1 },
      { ...common, ...unanswered, ...silent, bot_id: 'bot-2', trunk: '', calls: 1 },
      {
        ...{ ...common, status: 'completed', outcome: 'completed', verdict: 'amd_human_detected' },
        ...{ calls: 2, answered: 2, short: 0, talk_ms: 60_000 },
      },
      { ...common, ...unanswered, ...silent, slot: '10:15', calls: 1 },
    ]);
  });

  test('count each call once, however often and by whomever it is settled', async () => {
    const calls = await Promise.all(
      Array.from({ length: 12 }, () => ended({ outcome: 'completed' })),
    );
    await settle('a', calls.slice(0, 6));
    await Promise.all([settle('a', calls), settle('a', calls), settle('b', calls)]);
    await rig.database.pool.query(`update calls set owner_id = 'b'`);
    await settle('b', calls);

    expect(await totals()).toEqual([
      expect.objectContaining({ calls: 12, outcome: 'completed', status: 'completed' }),
    ]);
  });

  test('are exact if several processes settle calls of the same rows at the same time', async () => {
    const owners = ['a', 'b', 'c', 'd'];
    const byOwner = new Map<string, AcceptedCall[]>();
    for (const owner of owners) {
      const calls = Array.from({ length: 25 }, (_, index) =>
        acceptedCall({ botId: `bot-${index % 5}` }),
      );
      byOwner.set(owner, calls);
      await Promise.all(calls.map((call) => rig.ledger.accept(call, {})));
      await rig.database.pool.query(
        `update calls set owner_id = $1, state = 'ended', status = 'failed', outcome = 'busy', ended_at = now()
         where call_id = any($2::text[])`,
        [owner, calls.map(({ callId }) => callId)],
      );
    }

    await Promise.all([...byOwner].map(([owner, calls]) => settle(owner, calls.toReversed())));

    const rows = await totals();
    expect(rows).toHaveLength(5);
    expect(rows.map((row) => row['calls'])).toEqual([20, 20, 20, 20, 20]);
  });

  test('outlive the calls, and are deleted after 400 days', async () => {
    const call = await ended({ outcome: 'completed' });
    await settle('a', [call]);
    await rig.database.pool.query('update calls set end_published_at = ended_at');
    await rig.database.pool.query('delete from notification_lanes');
    const daysLater = (days: number) => new Date(Date.UTC(2026, 2, 1 + days, 12));

    rig.setNow(daysLater(399));
    await rig.ledger.purge(daysLater(369));
    expect(await rig.rowOf(call.callId)).toBeUndefined();
    expect(await totals()).toHaveLength(1);
    rig.setNow(daysLater(401));
    await rig.ledger.purge(daysLater(371));
    expect(await totals()).toEqual([]);
  });
});
