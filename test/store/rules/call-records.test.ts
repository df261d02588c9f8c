// The record of each call, which settling writes.

import { describe, expect, test } from 'vitest';
import type { AcceptedCall } from '../../../src/calls/call-types.ts';
import type { CallStep } from '../../../src/calls/life/call-step.ts';
import { silentLogger } from '../../../src/lib/logger.ts';
import { Settling } from '../../../src/store/outbox/settling.ts';
import { purgeRecords } from '../../../src/store/retention.ts';
import { acceptedCall, answeredEventOf, endEventOf } from '../../support/call-records.ts';
import { databaseKinds } from '../../support/databases.ts';
import { rowsIn } from '../../support/tables.ts';
import { eachWithLedger, type LedgerRig, tomorrow } from '../ledger-rig.ts';

const at = (time: string): Date => new Date(`2026-03-01T${time}Z`);
const endedAt = at('10:01:00.456');

describe.each(databaseKinds)('the record of a call on %s', (kind) => {
  let rig: LedgerRig;
  eachWithLedger(kind, (made) => {
    rig = made;
  });

  /** Accepts a call, stores its steps and its end, and settles it. */
  async function settled(
    call: AcceptedCall,
    { steps = [], ...ending }: Partial<CallStep['ending']> & { steps?: Partial<CallStep>[] } = {},
  ): Promise<AcceptedCall> {
    await rig.ledger.accept(call, {});
    await rig.take(call.callId, 'a');
    for (const step of steps) await rig.append('a', call, step);
    await rig.append('a', call, { ending: { event: endEventOf(call), ...ending } });
    await settle(call);
    return call;
  }

  async function settle({ callId }: AcceptedCall, ownerId = 'a'): Promise<void> {
    const settling = new Settling(rig.database.pool, ownerId, () => false, silentLogger);
    settling.settle(callId);
    await settling.stop();
  }

  const records = () => rowsIn(rig.database.pool, 'call_records');

  test('has the numbers, the times, the outcome and the evidence', async () => {
    const evidence = {
      sounds: [{ name: 'sound:offer', sha256: '0a'.repeat(32) }],
      connections: [{ with: 'bot', at: '2026-03-01T10:00:31.000Z' }],
    } as const;
    const call = acceptedCall();
    const request = { ...call.request, callerName: 'Sunny Solar', campaign: 'autumn' };
    await settled(
      { ...call, request },
      {
        steps: [
          { dialedAt: at('10:00:01.000') },
          { ringingAt: at('10:00:03.000') },
          {
            events: [answeredEventOf(call, '2026-03-01T10:00:30.456Z')],
            answeredAt: at('10:00:30.456'),
          },
        ],
        event: endEventOf(call, { machineDetection: 'amd_human_detected' }),
        evidence,
      },
    );

    expect(await records()).toEqual([
      {
        ...{ account_id: 'account-1', app_id: 'app-1', bot_id: 'bot-1', trunk: 'sandbox' },
        ...{ accepted_at: call.acceptedAt, call_id: call.callId },
        ...{ number: '14155550100', target: null },
        ...{ caller: '14155550199', caller_name: 'Sunny Solar' },
        dialed_at: at('10:00:01.000'),
        ringing_at: at('10:00:03.000'),
        answered_at: at('10:00:30.456'),
        ended_at: endedAt,
        ...{ outcome: 'completed', reason_code: 'Caller-disconnected' },
        ...{ verdict: 'amd_human_detected', campaign: 'autumn' },
        ...{ time_zone: null, consent: null, rule_set: null, rule_set_version: null, rule: null },
        ...{ ftc_outcome: null, ofcom_outcome: null },
        evidence,
      },
    ]);
  });

  test('has a number only if the target is one, and the whole target otherwise', async () => {
    const targets = [
      { kind: 'sip', user: 'anna', host: 'pbx.example' },
      { kind: 'sip', user: '+14155550101', host: 'pbx.example' },
      { kind: 'tel', number: '14155550102' },
      { kind: 'tel', number: '14155550103', ext: '7' },
      { kind: 'local', digits: '110', phoneContext: '+49' },
    ] as const;
    for (const target of targets) {
      const call = acceptedCall();
      await settled({ ...call, request: { ...call.request, target } });
    }

    const byNumber = new Map((await records()).map(({ number, target }) => [number, target]));
    expect(await records()).toHaveLength(targets.length);
    expect(byNumber.get('14155550101')).toEqual(targets[1]);
    expect(byNumber.get('14155550102')).toBeNull();
    expect(byNumber.get('14155550103')).toEqual(targets[3]);
    const { rows } = await rig.database.pool.query(
      `select target ->> 'kind' as kind from call_records where number is null order by 1`,
    );
    expect(rows).toEqual([{ kind: 'local' }, { kind: 'sip' }]);
  });

  test('is written once, however often and by whomever the call is settled', async () => {
    const call = await settled(acceptedCall());
    await Promise.all([settle(call), settle(call)]);
    // The database of the calls was restored from a backup, and recovery settles the call again.
    await rig.database.pool.query(
      `update calls set end_published_at = null, owner_id = 'b', outcome = 'unknown'`,
    );
    await settle(call, 'b');

    expect(await records()).toMatchObject([{ call_id: call.callId, outcome: 'completed' }]);
  });

  test('outlives the call, and is deleted after its own retention', async () => {
    const call = await settled(acceptedCall());
    const { database } = rig;
    await database.pool.query('update calls set end_published_at = ended_at');
    await database.pool.query('delete from notification_lanes');

    await rig.ledger.purge(tomorrow);
    expect(await rig.rowOf(call.callId)).toBeUndefined();
    expect(await purgeRecords(database, call.acceptedAt)).toBe(0);
    expect(await records()).toHaveLength(1);
    expect(await purgeRecords(database, tomorrow)).toBe(1);
    expect(await records()).toEqual([]);
  });

  test('is deleted in batches, which a stop of the process ends early', async () => {
    await rig.database.pool.query(
      `insert into call_records (account_id, accepted_at, call_id, app_id, bot_id, caller, ended_at, outcome)
       select 'acme', $1::timestamptz - n * interval '1 s', 'call-' || n, 'app-1', 'st-1', '1', $1, 'busy'
       from generate_series(0, 1200) n`,
      [endedAt],
    );
    const stopped = AbortSignal.abort();

    expect(await purgeRecords(rig.database, endedAt, stopped)).toBe(0);
    expect(await purgeRecords(rig.database, endedAt)).toBe(1_200);
    expect(await records()).toMatchObject([{ call_id: 'call-0' }]);
  });

  test('exists before a call can be purged, because an unsettled call is never purged', async () => {
    const call = acceptedCall();
    await rig.ledger.accept(call, {});
    await rig.take(call.callId, 'a');
    await rig.append('a', call, { ending: { event: endEventOf(call) } });
    await rig.database.pool.query('delete from notification_lanes');

    await rig.ledger.purge(tomorrow);
    expect(await rig.rowOf(call.callId)).toBeDefined();
    await settle(call);
    expect(await records()).toHaveLength(1);
  });

  test('says when the first INVITE left, even if a later gateway carried the call', async () => {
    await settled(acceptedCall(), {
      steps: [{ dialedAt: at('10:00:01.000') }, { dialedAt: at('10:00:05.000') }],
    });
    await settled(acceptedCall());

    const dialed = (await records()).map((row) => row['dialed_at']);
    expect(dialed).toHaveLength(2);
    expect(dialed).toEqual(expect.arrayContaining([at('10:00:01.000'), null]));
  });
});
