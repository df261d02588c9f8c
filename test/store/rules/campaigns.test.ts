// What a campaign's calls have come to, and how its rows hold it back.

import { describe, expect, test } from 'vitest';
import type { PersonOutcome } from '../../../src/calls/abandonment/abandonment.ts';
import type { AcceptedCall } from '../../../src/calls/call-types.ts';
import { silentLogger } from '../../../src/lib/logger.ts';
import { Settling } from '../../../src/store/outbox/settling.ts';
import { checkCall } from '../../../src/store/rules/call-checks.ts';
import {
  beginCampaigns,
  type CampaignGate,
  lockCampaigns,
  storeGates,
} from '../../../src/store/rules/campaign-gates.ts';
import { createCampaigns } from '../../../src/store/rules/campaigns.ts';
import { createRuleSetStore } from '../../../src/store/rules/rule-sets.ts';
import { inTransaction } from '../../../src/store/transaction.ts';
import { acceptedCall, answeredEventOf, endEventOf } from '../../support/call-records.ts';
import { databaseKinds } from '../../support/databases.ts';
import { takesOf } from '../../support/takes.ts';
import { eachWithLedger, type LedgerRig } from '../ledger-rig.ts';

const rule = { most: 3, allow: 0 };

describe.each(databaseKinds)('a campaign on %s', (kind) => {
  let rig: LedgerRig;
  eachWithLedger(kind, (made) => {
    rig = made;
  });

  /** Makes a call of the campaign that a rule set has permitted. */
  async function dialled(call = newCall()): Promise<AcceptedCall> {
    await rig.ledger.accept(call, {});
    await rig.take(call.callId, 'a');
    await rig.database.pool.query(
      `update calls set rule_set = 'default', rule_set_version = 1, ftc_outcome = 'undecided' where call_id = $1`,
      [call.callId],
    );
    await rig.append('a', call, { dialedAt: new Date() });
    return call;
  }

  async function reach(call: AcceptedCall, ftc: PersonOutcome, ofcom = ftc): Promise<void> {
    const answeredAt = new Date();
    const event = answeredEventOf(call, answeredAt.toISOString());
    await rig.append('a', call, { events: [event], answeredAt });
    await rig.append('a', call, { person: { ftc, ofcom } });
  }

  async function settle(
    call: AcceptedCall,
    data: Parameters<typeof endEventOf>[1] = {},
  ): Promise<void> {
    const time = new Date().toISOString();
    const event = { ...endEventOf(call, { ...data, callDisconnectTime: time }), time };
    await rig.append('a', call, { ending: { event } });
    const settling = new Settling(rig.database.pool, 'a', () => false, silentLogger);
    settling.settle(call.callId);
    await settling.stop();
  }

  let taken = 0;
  const wanted = { accountId: 'account-1', campaign: 'autumn', ruleSet: 'default' };

  async function withGate<Result>(use: (gate: CampaignGate) => Result): Promise<Result> {
    return await inTransaction(rig.database.pool, async (client) => {
      await beginCampaigns(client, [wanted]);
      const gates = await lockCampaigns(client, [wanted], new Date());
      const [gate] = [...gates.values()];
      if (gate === undefined) throw new Error('the campaign was not locked');
      const result = use(gate);
      await storeGates(client, [gate]);
      return result;
    });
  }

  const judge = (callId: string, now = new Date()) =>
    withGate((gate) => gate.judge(callId, rule, now));

  const find = () => createCampaigns(rig.database).find('account-1', 'autumn');

  test('counts each call once, before it is settled and after', async () => {
    await withGate(() => undefined);
    const outcomes: PersonOutcome[] = ['connected', 'connected', 'abandoned', 'left', 'none'];
    const calls: AcceptedCall[] = [];
    for (const outcome of outcomes) {
      const call = await dialled();
      await reach(call, outcome, outcome === 'left' ? 'abandoned' : outcome);
      calls.push(call);
    }
    const before = await find();
    for (const call of calls.slice(0, 3)) await settle(call);
    const between = await find();
    for (const call of calls.slice(3)) await settle(call);

    expect(before?.months).toMatchObject([
      {
        ftc: { answeredByPerson: 4, abandoned: 1, connected: 2 },
        ofcom: { answeredByPerson: 4, abandoned: 2, connected: 2 },
      },
    ]);
    expect(before?.days).toHaveLength(1);
    expect(between).toEqual(before);
    expect(await find()).toEqual(before);
  });

  test('counts a person whose process died before it stored an outcome as abandoned, as the record says', async () => {
    await withGate(() => undefined);
    const [busy, lost] = [await dialled(), await dialled()];
    const unsent = newCall();
    await rig.ledger.accept(unsent, {});
    await rig.take(unsent.callId, 'a');
    await rig.database.pool.query(
      `update calls set ftc_outcome = 'undecided', ofcom_outcome = 'undecided'`,
    );
    await settle(busy);
    await settle(lost, { machineDetection: 'amd_human_detected' });
    await settle(unsent);

    const { rows } = await rig.database.pool.query<Record<string, string>>(
      'select call_id, ftc_outcome, ofcom_outcome from call_records',
    );
    const outcomesOf = ({ callId }: AcceptedCall) => {
      const row = rows.find(({ call_id: id }) => id === callId);
      return [row?.['ftc_outcome'], row?.['ofcom_outcome']];
    };
    expect(outcomesOf(busy)).toEqual(['none', 'none']);
    expect(outcomesOf(lost)).toEqual(['abandoned', 'abandoned']);
    expect(outcomesOf(unsent)).toEqual([null, null]);
    expect((await find())?.months).toMatchObject([
      { ftc: { answeredByPerson: 1, abandoned: 1, connected: 0 } },
    ]);
  });

  test('does not count calls that no rule set measures', async () => {
    await withGate(() => undefined);
    const call = await dialled();
    await rig.database.pool.query('update calls set ftc_outcome = null');
    await settle(call);

    expect((await find())?.months).toEqual([]);
  });

  test('notes for the rest of a number that its call was abandoned', async () => {
    await withGate(() => undefined);
    const call = await dialled();
    await rig.database.pool.query(
      `insert into called_numbers (account_id, number, call_ids, attempted_at, used_at)
       values ('account-1', '+14155550100', '{}', '{}', now())`,
    );
    await reach(call, 'abandoned');
    await settle(call);

    const { rows } = await rig.database.pool.query(
      'select abandoned_at is not null as is_noted from called_numbers',
    );
    expect(rows).toEqual([{ is_noted: true }]);
  });

  test('is held for a check, too', async () => {
    const hold = { abandoned: { formula: 'ftc', ...rule, hold: true } } as const;
    const store = createRuleSetStore({ database: rig.database, clock: { now: () => new Date() } });
    await store.put('account-1', 'default', { document: hold, appId: 'app-1' });
    const check = async (campaign: string) => {
      const request = { ...newCall().request, campaign };
      const call = { accountId: 'account-1', request };
      return (await checkCall(rig.database.pool, call, new Date())).decision;
    };
    expect(await check('autumn')).toEqual({ kind: 'permitted' });
    await judge('call-1');
    await reach(await dialled(), 'abandoned');

    const until = await judge('call-2');
    expect(await check('autumn')).toEqual({ kind: 'wait', rule: 'abandoned-rate', until });
    expect(await check('winter')).toEqual({ kind: 'permitted' });
  });

  test('leaves a number alone that was abandoned, before the call is settled and after a deletion', async () => {
    const store = createRuleSetStore({ database: rig.database, clock: { now: () => new Date() } });
    const document = { rest: { afterAbandoned: '72h', otherwise: 'fail' } } as const;
    await withGate(() => undefined);
    const call = await dialled();
    await reach(call, 'none', 'abandoned');
    await store.put('account-1', 'default', { document, appId: 'app-1' });
    const next = async () => {
      const after = newCall();
      await rig.ledger.accept(after, {});
      const takes = takesOf(rig.database.pool, 'a', {
        ...{ clock: { now: () => new Date() }, maxHeldPerAccount: 10 },
      });
      const limits = { maxConcurrentCalls: 100 };
      taken += 1;
      const wanted = { takeId: taken, isRepeated: false, wanted: 50 };
      const { grants } = await takes.take({
        ...{ ...wanted, source: 'sandbox', limits, horizonMs: 200 },
      });
      return grants.map(({ refusal }) => refusal?.rule ?? 'permitted');
    };

    expect(await next()).toEqual(['rest']);
    await settle(call);
    expect(await next()).toEqual(['rest']);
    await rig.database.pool.query('delete from called_numbers');
    expect(await next()).toEqual(['rest']);
  });

  test('is unknown to other accounts, and before its first call', async () => {
    expect(await find()).toBeUndefined();
    await withGate(() => undefined);

    expect(await createCampaigns(rig.database).find('account-2', 'autumn')).toBeUndefined();
  });

  test('waits while a call in flight may be abandoned', async () => {
    expect(await judge('call-1')).toBeUndefined();
    await reach(await dialled(), 'abandoned');
    await judge('call-2', later(-60_000));
    const probe = newCall();
    expect(await judge(probe.callId)).toBeUndefined();
    await dialled(probe);

    expect(await judge('call-3')).toBeInstanceOf(Date);
    expect((await find())?.held).toBeDefined();
    await reach(probe, 'connected');
    expect(await judge('call-3', later(1_000))).toBeUndefined();
  });

  test('doubles its pause after an abandoned probe', async () => {
    await judge('call-1');
    const first = await dialled();
    await reach(first, 'abandoned');
    expect(await judge('call-2')).toBeInstanceOf(Date);
    const probe = newCall();
    expect(await judge(probe.callId, later(31_000))).toBeUndefined();
    await dialled(probe);
    await reach(probe, 'abandoned');
    const waits = await judge('call-3', later(32_000));

    expect(waits?.getTime()).toBeGreaterThan(Date.now() + 59_000 - 5_000);
    expect(waits?.getTime()).toBeLessThan(Date.now() + 61_000);
  });

  test('lets two nodes judge one after the other', async () => {
    await judge('call-0');
    await reach(await dialled(), 'abandoned');
    await judge('call-1', later(-60_000));
    const verdicts = await Promise.all(
      ['call-1', 'call-2', 'call-3'].map(async (callId) => {
        const verdict = await inTransaction(rig.database.pool, async (client) => {
          await beginCampaigns(client, [wanted]);
          const gates = await lockCampaigns(client, [wanted], new Date());
          const gate = [...gates.values()][0];
          const until = gate?.judge(callId, rule, new Date());
          await storeGates(client, gates.values());
          const call = acceptedCall({ acceptedAt: new Date() });
          if (until === undefined) {
            await client.query(
              `insert into calls (call_id, sid, conversation_id, account_id, app_id, bot_id, request,
                 state, status, accepted_at, dial_before, dial_started_at, ftc_outcome)
               values ($1, $1, $1, 'account-1', 'app-1', 'bot-1', $2, 'dialing', 'dialing', now(), now(), now(), 'undecided')`,
              [callId, { ...call.request, campaign: 'autumn' }],
            );
          }
          return until;
        });
        return verdict === undefined ? 'permitted' : 'waits';
      }),
    );

    expect(verdicts.toSorted()).toEqual(['permitted', 'waits', 'waits']);
  });

  test('begins a new window after 30 days, in which nothing counts yet', async () => {
    await judge('call-1');
    const call = await dialled();
    await reach(call, 'abandoned');
    await settle(call);
    await rig.database.pool.query(
      `update campaigns set began_at = began_at - interval '31 days', window_from = window_from - interval '31 days'`,
    );
    await rig.database.pool.query(`update campaign_totals set slot = slot - interval '31 days'`);

    expect(await judge('call-2')).toBeUndefined();
  });
});

function newCall(): AcceptedCall {
  const call = acceptedCall({ acceptedAt: new Date() });
  return { ...call, request: { ...call.request, campaign: 'autumn' } };
}

function later(ms: number): Date {
  return new Date(Date.now() + ms);
}
