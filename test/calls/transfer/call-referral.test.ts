// One time-out bounds the whole referral: the wait for the permission, which SQL gives, the REFER,
// and the reports of the far end. After it, the bot hears the person again and no REFER leaves.

import { afterEach, expect, test } from 'vitest';
import type { CallLeg, ReferEvent, ReferRequest, SecondLegPort } from '../../../src/calls/ports.ts';
import { CallReferral } from '../../../src/calls/transfer/call-referral.ts';
import type { Transfer } from '../../../src/calls/transfer/transfer.ts';
import type { TransferReport } from '../../../src/calls/transfer/transfer-report.ts';
import { eventually } from '../../support/eventually.ts';
import { acceptedCall } from '../../support/scripted-call.ts';

type Admission = Awaited<ReturnType<SecondLegPort['admit']>>;

const call = acceptedCall();
const givenUp: (() => void)[] = [];
afterEach(() => {
  for (const giveUp of givenUp.splice(0)) giveUp();
});

function refer(timeoutMs: number, { keepStream = false } = {}) {
  const transfer: Transfer = {
    ...{ legId: `${call.callId}-leg-2`, to: { kind: 'tel', number: '15550177' }, mode: 'refer' },
    ...{ timeoutMs, caller: '15550199', keepStream, onFailure: 'stay' },
  };
  const reports: TransferReport[] = [];
  const gates: boolean[] = [];
  const referred: ReferRequest[] = [];
  let grant: (admission: Admission) => void = () => undefined;
  let refuse: (error: Error) => void = () => undefined;
  const permission = new Promise<Admission>((resolve, reject) => {
    [grant, refuse] = [resolve, reject];
  });
  let tell: ((event: ReferEvent) => void) | undefined;
  let isWanted = (): boolean => false;
  const nothing = (): void => undefined;
  const leg: CallLeg = {
    ...{ cancel: nothing, acknowledge: nothing, hangUp: nothing, press: async () => true },
    released: new Promise(() => undefined),
    refer: (request, listener) => {
      referred.push(request);
      tell = listener;
    },
  };
  const referral = new CallReferral(
    call,
    transfer,
    {
      leg,
      session: {
        send: (command) => {
          if (command.kind === 'gateStream') gates.push(command.isGated);
        },
      },
    },
    {
      clock: { now: () => new Date() },
      admission: {
        admit: (_call, _transfer, isStillWanted) => {
          isWanted = isStillWanted;
          return permission;
        },
      },
    },
    (report) => reports.push(report),
  );
  givenUp.push(() => referral.giveUp());
  referral.start();
  return {
    ...{ reports, gates, referred, referral, grant, refuse },
    isWanted: () => isWanted(),
    observe: (event: ReferEvent) => tell?.(event),
    /** Lets what was begun go on as far as it can. */
    settle: () => new Promise<void>((resolve) => setImmediate(resolve)),
  };
}

const failedHere = (reason: string) => [
  { kind: 'failed', failure: { kind: 'gateway', at: expect.any(Date), reason } },
];

test('fails if the permission does not come in time, and the bot hears the person again', async () => {
  const { reports, gates, referred, isWanted } = refer(50);
  expect(isWanted()).toBe(true);
  await eventually(() => reports.length > 0, 'it fails');

  expect(reports).toEqual(failedHere('No permission in time'));
  expect(gates).toEqual([true, false]);
  expect(isWanted()).toBe(false);
  expect(referred).toEqual([]);
});

test('sends no REFER and reports nothing more if the permission comes after the failure', async () => {
  const { reports, referred, grant, settle } = refer(50);
  await eventually(() => reports.length > 0, 'it fails');
  grant({ ok: true });
  await settle();

  expect(referred).toEqual([]);
  expect(reports).toHaveLength(1);
});

test('sends no REFER and reports nothing if the permission comes after the call gave the transfer up', async () => {
  const { reports, referred, grant, referral, settle } = refer(20_000);
  referral.giveUp();
  grant({ ok: true });
  await settle();

  expect([referred, reports]).toEqual([[], []]);
});

test('gives the REFER the time that the wait for its permission has left', async () => {
  const { reports, referred, grant, settle } = refer(20_000);
  const beganMs = performance.now();
  await eventually(() => performance.now() - beganMs >= 30, 'it waits');
  grant({ ok: true });
  await settle();

  expect(referred).toHaveLength(1);
  expect(referred[0]?.timeoutMs).toBeLessThanOrEqual(20_000 - 30);
  expect(referred[0]?.timeoutMs).toBeGreaterThan(0);
  expect(reports).toEqual([]);
});

test('leaves the time-out of a REFER that was sent to the leg', async () => {
  const { reports, gates, grant, observe, settle } = refer(40);
  grant({ ok: true });
  await settle();
  const beganMs = performance.now();
  await eventually(() => performance.now() - beganMs >= 80, 'the time-out is over');
  expect(reports).toEqual([]);
  observe({ kind: 'progress', sipStatus: 202 });
  observe({ kind: 'unheard', reason: 'The far end reported nothing about the referral' });

  expect(reports).toMatchObject([{ kind: 'failed', failure: { kind: 'unheard' } }]);
  expect(gates).toEqual([true, false]);
});

test('fails if a defect prevents the permission', async () => {
  const { reports, gates, referred, refuse, settle } = refer(20_000);
  refuse(new Error('a defect'));
  await settle();

  expect(reports).toEqual(failedHere('Not asked: a defect'));
  expect(gates).toEqual([true, false]);
  expect(referred).toEqual([]);
});

test('reports a refusal as a refusal', async () => {
  const { reports, grant, settle } = refer(20_000);
  grant({ ok: false, reason: 'The app may not dial this number' });
  await settle();

  expect(reports).toMatchObject([
    { kind: 'failed', failure: { kind: 'refused', reason: 'The app may not dial this number' } },
  ]);
});

test('takes a BYE as success only after the far end took the REFER', async () => {
  const { reports, grant, observe, referral, settle } = refer(20_000);
  referral.onFarEndHangUp();
  grant({ ok: true });
  await settle();
  referral.onFarEndHangUp();
  expect(reports).toEqual([]);
  observe({ kind: 'progress', sipStatus: 202 });

  referral.onFarEndHangUp();
  expect(reports).toMatchObject([{ kind: 'referred', hasHungUp: true }]);
});
