// A call that is stored as taken: started here, or left to others; never both, and never forgotten.

import { describe, expect, test } from 'vitest';
import type { CallId } from '../../src/calls/contract/identity.ts';
import { Reservations } from '../../src/dialout/reservations.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { acceptedCall } from '../support/call-records.ts';
import { settled } from '../support/dialout-world.ts';

function world() {
  const started: CallId[] = [];
  const asked: (readonly CallId[])[] = [];
  const stored = new Set<CallId>();
  const sql = { isAway: false };
  const state = { held: 0, mayStart: true, nowMs: 0 };
  const reservations = new Reservations({
    takes: {
      giveBack: async (callIds) => {
        asked.push(callIds);
        if (sql.isAway) throw new Error('SQL is unreachable');
        return callIds.filter((callId) => stored.delete(callId));
      },
    },
    places: {
      hold: (count) => {
        state.held += count;
      },
      giveBack: (count) => {
        state.held -= count;
      },
    },
    mayStart: () => state.mayStart,
    start: ({ callId }) => void started.push(callId),
    nowMs: () => state.nowMs,
    logger: silentLogger,
  });
  const open = (callId: CallId = acceptedCall().callId) => {
    const reservation = reservations.open(callId);
    if (reservation === undefined) throw new Error('there is no place');
    return reservation;
  };
  return { reservations, open, started, asked, stored, sql, state };
}

describe('a place for a call that is being accepted', () => {
  test('is held until the call starts, or is not stored', () => {
    const { open, state, started } = world();
    const call = acceptedCall();
    const [one, other] = [open(call.callId), open()];
    expect(state.held).toBe(2);
    one.start(call);
    expect([state.held, started]).toEqual([1, [call.callId]]);
    other.cancel();
    expect([state.held, started]).toEqual([0, [call.callId]]);
  });

  test('whose answer is lost gives its call back, where it was stored', async () => {
    const { open, reservations, asked, stored, state, started } = world();
    const { callId } = acceptedCall();
    stored.add(callId);
    open(callId).doubt();
    await reservations.giveBack();
    expect([stored.size, reservations.hasDoubtful]).toEqual([0, false]);
    await reservations.giveBack();
    expect([asked, started, state.held]).toEqual([[[callId]], [], 0]);
  });

  test('is asked about as long as the statement may still commit, and no longer', async () => {
    const { open, reservations, stored, state, asked } = world();
    const [late, never] = [acceptedCall().callId, acceptedCall().callId];
    for (const callId of [late, never]) open(callId).doubt();
    await reservations.giveBack();
    state.nowMs = 15_000;
    stored.add(late);
    await reservations.giveBack();
    expect(stored.size).toBe(0);
    state.nowMs = 31_000;
    await reservations.giveBack();
    await reservations.giveBack();
    expect([asked, reservations.hasDoubtful]).toEqual([
      [[late, never], [late, never], [never]],
      false,
    ]);
  });

  test('is asked about again where that failed, however late', async () => {
    const { open, reservations, sql, state, stored } = world();
    const { callId } = acceptedCall();
    open(callId).doubt();
    stored.add(callId);
    sql.isAway = true;
    state.nowMs = 60_000;
    await expect(reservations.giveBack()).rejects.toThrow('unreachable');
    sql.isAway = false;
    await reservations.giveBack();
    expect([stored.size, reservations.hasDoubtful]).toEqual([0, false]);
  });

  test('gives its call back where it is stored when no INVITE may leave in time', async () => {
    const { open, reservations, stored, state, started } = world();
    const call = acceptedCall();
    const reservation = open(call.callId);
    state.mayStart = false;
    stored.add(call.callId);
    reservation.start(call);
    await reservations.giveBack();
    expect([started, stored.size, state.held]).toEqual([[], 0, 0]);
  });

  test('says which calls SQL may have as taken, from the first until it is known what became of them', async () => {
    const { open, reservations, stored } = world();
    const [started, refused, lost] = [acceptedCall(), acceptedCall(), acceptedCall()];
    const [one, other, third] = [started, refused, lost].map(({ callId }) => open(callId));
    expect(reservations.callIds).toEqual([started, refused, lost].map(({ callId }) => callId));
    one?.start(started);
    other?.cancel();
    third?.doubt();
    expect(reservations.callIds).toEqual([lost.callId]);
    stored.add(lost.callId);
    await reservations.giveBack();
    expect(reservations.callIds).toEqual([]);
  });

  test('is not to be had while too many are in doubt', async () => {
    const { open, reservations, stored } = world();
    for (let index = 0; index < 1_000; index += 1) {
      const { callId } = acceptedCall();
      stored.add(callId);
      open(callId).doubt();
    }
    expect(reservations.open(acceptedCall().callId)).toBeUndefined();
    await reservations.giveBack();
    expect(reservations.open(acceptedCall().callId)).toBeDefined();
  });

  test('is waited for at a stop, and what is stored by then is left to others', async () => {
    const { open, reservations, stored, started } = world();
    const call = acceptedCall();
    const reservation = open(call.callId);
    let isStopped = false;
    const stopped = reservations.stop().then(() => {
      isStopped = true;
    });
    await settled();
    expect([isStopped, reservations.open(acceptedCall().callId)]).toEqual([false, undefined]);
    stored.add(call.callId);
    reservation.start(call);
    await stopped;
    expect([started, stored.size]).toEqual([[], 0]);
  });

  test('gives its call back at a stop as soon as the database answers again', async () => {
    const { open, reservations, stored, sql, asked } = world();
    const { callId } = acceptedCall();
    stored.add(callId);
    open(callId).doubt();
    sql.isAway = true;
    const stopped = reservations.stop();
    await settled();
    expect([asked.length, stored.size]).toEqual([1, 1]);
    sql.isAway = false;
    await stopped;
    expect([stored.size, reservations.hasDoubtful]).toEqual([0, false]);
  });

  test('that is stored when the stop is over gives its call back all the same', async () => {
    const { open, reservations, stored, started } = world();
    const call = acceptedCall();
    const reservation = open(call.callId);
    void reservations.stop();
    stored.add(call.callId);
    reservation.start(call);
    await settled();
    expect([started, stored.size]).toEqual([[], 0]);
  });
});
