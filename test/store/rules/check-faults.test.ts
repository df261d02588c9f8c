// The check of taken calls breaks off at each of its statements, before the statement runs or when
// its answer is lost. The process then repeats the take, or dies. In each case, the attempts that
// are recorded are those of the calls whose INVITE may leave.

import type { Pool, PoolClient } from 'pg';
import { describe, expect, test } from 'vitest';
import type { AcceptedCall } from '../../../src/calls/call-types.ts';
import type { Taken } from '../../../src/calls/dialout-ports.ts';
import type { RuleSetDocument } from '../../../src/rules/rule-set.ts';
import { createRuleSetStore } from '../../../src/store/rules/rule-sets.ts';
import { acceptedCall } from '../../support/call-records.ts';
import { databaseKinds } from '../../support/databases.ts';
import { takesOf } from '../../support/takes.ts';
import { eachWithLedger, type LedgerRig } from '../ledger-rig.ts';

const document: RuleSetDocument = {
  attempts: [{ most: 1, within: '24h', otherwise: 'wait' }],
  abandoned: { formula: 'ftc', most: 3, allow: 0, hold: true },
};
const clock = { now: () => new Date() };

type Fault = { readonly statement: number; readonly when: 'before' | 'after' };

describe.each(databaseKinds)('a check that breaks off on %s', (kind) => {
  let rig: LedgerRig;
  eachWithLedger(kind, (opened) => {
    rig = opened;
  });

  const accept = async (number: string, campaign: string): Promise<AcceptedCall> => {
    const base = acceptedCall({ acceptedAt: new Date() });
    const target = { kind: 'tel', number } as const;
    const machineDetection = 'detect' as const;
    const call = { ...base, request: { ...base.request, target, campaign, machineDetection } };
    await rig.ledger.accept(call, {});
    return call;
  };

  const take = (pool: Pool, takeId: number, isRepeated = false): Promise<Taken> =>
    takesOf(pool, 'a/1').take({
      ...{ takeId, isRepeated, source: 'sandbox', wanted: 10, horizonMs: 200 },
      limits: { maxConcurrentCalls: 1_000 },
    });

  const attempts = async (): Promise<readonly string[]> => {
    const { rows } = await rig.database.pool.query<{ call_id: string }>(
      'select unnest(call_ids) as call_id from called_numbers order by 1',
    );
    return rows.map(({ call_id: callId }) => callId);
  };

  test('records the attempts of calls that may leave, and no others', async () => {
    const { pool } = rig.database;
    await createRuleSetStore({ database: rig.database, clock }).put('account-1', 'default', {
      ...{ document, appId: 'app-1' },
    });
    const mayLeave: string[] = [];
    let takeId = 0;
    let isOver = false;
    for (let statement = 1; !isOver; statement += 1) {
      for (const when of ['before', 'after'] as const) {
        takeId += 1;
        const campaign = `campaign-${takeId}`;
        const number = String(14_155_550_000 + takeId * 10);
        await accept(number, campaign);
        await accept(number, campaign);
        await accept(String(14_155_550_001 + takeId * 10), campaign);
        const broken = await take(failing(pool, { statement, when }), takeId).catch(
          () => undefined,
        );
        isOver = broken !== undefined;
        if (broken === undefined) {
          // If the process dies now, the check was stored as a whole or not at all.
          const stored = (await attempts()).length - mayLeave.length;
          expect([0, 2], `${when} statement ${statement}`).toContain(stored);
        }
        const { grants } = broken ?? (await take(pool, takeId, true));
        const permitted = grants.filter(({ refusal }) => refusal === undefined);
        mayLeave.push(...permitted.map(({ call }) => call.callId));

        expect(permitted, `${when} statement ${statement}`).toHaveLength(2);
        expect(await attempts()).toEqual(mayLeave.toSorted());
      }
    }
    // begin, the locks of calls and campaigns, new campaigns, the decisions, commit.
    expect(takeId).toBeGreaterThan(10);
  });
});

/** Loses the connection at one of the statements of a transaction. */
function failing(pool: Pool, { statement, when }: Fault): Pool {
  let sent = 0;
  const query = async (client: PoolClient, args: [never, never]): Promise<unknown> => {
    sent += 1;
    if (sent === statement && when === 'before') throw new Error('Connection terminated');
    const result: unknown = await client.query(...args);
    if (sent === statement) throw new Error('Connection terminated');
    return result;
  };
  return {
    query: (...args: [never, never]) => pool.query(...args),
    connect: async () => {
      const client = await pool.connect();
      return {
        query: (...args: [never, never]) => query(client, args),
        release: (error?: Error) => client.release(error),
      };
    },
  } as unknown as Pool;
}
