// SQL goes away while calls are placed.

import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { CallId } from '../../src/calls/contract/identity.ts';
import type { StoredLeg } from '../../src/calls/contract/stored-leg.ts';
import { LegRecord } from '../../src/calls/leg-record.ts';
import { storedLeg } from '../support/scripted-call.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const callId = 'call-1' as CallId;

function rig(failures: number) {
  const tried: StoredLeg[] = [];
  const errors: CallId[] = [];
  const legs = new LegRecord(
    {
      recordInvite: async (_callId, leg) => {
        tried.push(leg);
        if (tried.length <= failures) throw new Error('SQL is away');
      },
    },
    (failed) => errors.push(failed),
  );
  return { legs, tried, errors };
}

test('an INVITE is recorded once', async () => {
  const { legs, tried } = rig(0);
  legs.keep(callId, storedLeg);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(tried).toEqual([storedLeg]);
});

test('what could not be recorded is tried again until it is, and told of once', async () => {
  const { legs, tried, errors } = rig(3);
  legs.keep(callId, storedLeg);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(tried).toHaveLength(4);
  expect(errors).toEqual([callId]);
});

test('an INVITE that a newer one took the place of is not tried again', async () => {
  const { legs, tried } = rig(2);
  const newer = { ...storedLeg, transactionId: 'transaction-2' };
  legs.keep(callId, storedLeg);
  legs.keep(callId, newer);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(tried).toEqual([storedLeg, newer, newer]);
});

test('it is given up when no phone can ring any more', async () => {
  const { legs, tried, errors } = rig(Number.POSITIVE_INFINITY);
  legs.keep(callId, storedLeg);
  await vi.advanceTimersByTimeAsync(600_000);
  expect(tried).toHaveLength(120);
  expect(errors).toHaveLength(2);
});
