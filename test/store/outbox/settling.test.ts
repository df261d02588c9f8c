// The marks of ended calls: that a call is settled and, if settling has to wait, that no far end is
// left in it.

import { afterEach, describe, expect, test } from 'vitest';
import type { AcceptedCall } from '../../../src/calls/call-types.ts';
import { type Logger, silentLogger } from '../../../src/lib/logger.ts';
import { Settling } from '../../../src/store/outbox/settling.ts';
import { acceptedCall, endEventOf, storedLeg } from '../../support/call-records.ts';
import { eventually } from '../../support/eventually.ts';
import { recordedLogger } from '../../support/recorded-logger.ts';
import { eachWithLedger, type LedgerRig } from '../ledger-rig.ts';

describe('a call that has ended', () => {
  let rig: LedgerRig;
  let settling: Settling | undefined;
  eachWithLedger('pglite', (made) => {
    rig = made;
  });
  afterEach(async () => await settling?.stop());

  function open(logger: Logger = silentLogger): Settling {
    settling = new Settling(rig.database.pool, 'a', () => false, logger);
    return settling;
  }

  async function ended(): Promise<AcceptedCall> {
    const call = acceptedCall();
    await rig.ledger.accept(call, {});
    await rig.take(call.callId, 'a');
    await rig.append('a', call, { leg: storedLeg });
    await rig.append('a', call, { ending: { event: endEventOf(call) } });
    return call;
  }

  const legsOf = async ({ callId }: AcceptedCall): Promise<number> =>
    (await rig.database.pool.query('select from call_legs where call_id = $1', [callId]))
      .rowCount ?? 0;
  const isSettled = async ({ callId }: AcceptedCall): Promise<boolean> =>
    (await rig.rowOf(callId))?.['end_published_at'] !== null;

  test('leaves no leg for a later owner while its events wait to be published', async () => {
    const call = await ended();
    open().noteLegsGone(call.callId);

    await eventually(async () => (await legsOf(call)) === 0, 'its leg is gone');
    expect(await isSettled(call)).toBe(false);
  });

  test('costs no statement for its legs if it is settled soon', async () => {
    const [call, other] = [await ended(), await ended()];
    const marks = open();
    marks.noteLegsGone(call.callId);
    marks.settle(call.callId);
    marks.noteLegsGone(other.callId);
    await eventually(
      async () => (await legsOf(other)) === 0,
      'the legs of the other call are gone',
    );

    expect(await isSettled(call)).toBe(true);
    expect(await legsOf(call)).toBe(1);
  });

  test('is settled by its own process even if the database refuses at first', async () => {
    const [call, other] = [await ended(), await ended()];
    const { pool } = rig.database;
    const { logger, lines } = recordedLogger();
    const marks = open(logger);
    await pool.query('alter table calls rename to calls_elsewhere');
    await pool.query('alter table call_legs rename to call_legs_elsewhere');
    marks.settle(call.callId);
    marks.noteLegsGone(other.callId);
    await eventually(() => lines.length >= 2, 'it is tried twice');
    expect(marks.holds(call.callId)).toBe(true);
    await pool.query('alter table calls_elsewhere rename to calls');
    await pool.query('alter table call_legs_elsewhere rename to call_legs');

    await eventually(async () => (await legsOf(other)) === 0, 'the leg of the other one is gone');
    expect(await isSettled(call)).toBe(true);
    expect(marks.holds(call.callId)).toBe(false);
  });

  test('leaves no leg at the end of its process', async () => {
    const call = await ended();
    const marks = open();
    marks.noteLegsGone(call.callId);
    await marks.stop();

    expect(await legsOf(call)).toBe(0);
  });
});
