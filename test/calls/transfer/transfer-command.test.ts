// A transfer by command is checked for its call: the trunk and the caller ID of the call, and the
// limits of the app that placed it.

import { beforeEach, describe, expect, test } from 'vitest';
import { commandSchema } from '../../../src/calls/contract/command.ts';
import type { CallingApp } from '../../../src/calls/dialout-ports.ts';
import type { CallMachineEvent } from '../../../src/calls/life/call-setup.ts';
import {
  type TransferringPorts,
  transferHandler,
} from '../../../src/calls/transfer/transfer-command.ts';
import { acceptedCall } from '../../support/call-records.ts';
import { liveCall } from '../../support/live-call.ts';

const call = acceptedCall();
const ofTrunk = { ...call, request: { ...call.request, trunk: 'carrier', caller: '15550001111' } };

let known: CallingApp | undefined | Error;
beforeEach(() => {
  known = {};
});

const ports: Pick<TransferringPorts, 'routes' | 'apps'> = {
  routes: {
    plan: (_target, trunk) =>
      trunk === undefined || trunk === 'carrier'
        ? { ok: true, ...(trunk === undefined ? {} : { trunk }) }
        : { ok: false, field: 'trunk', message: 'there is no such trunk' },
    passes: (trunk, name) => trunk === 'carrier' && name === 'diversion',
  },
  apps: {
    find: async (appId) => {
      if (known instanceof Error) throw known;
      return appId === call.appId ? known : undefined;
    },
  },
};

async function judged(members: object) {
  const command = commandSchema.parse({ command: 'transfer', ...members });
  if (command.command !== 'transfer') throw new Error('not a transfer');
  const sent: CallMachineEvent[] = [];
  const live = liveCall(ofTrunk, (event) => sent.push(event));
  const asked = { live, commandId: 'agents', ports: { ...ports, registry: { live: () => live } } };
  const reply = await transferHandler.execute(command, asked);
  const [event] = sent;
  if (event?.type === 'command.transfer') return { ok: true, transfer: event.transfer };
  return { ok: false, refusal: reply };
}

describe('a transfer by command', () => {
  test('to a number uses the trunk and the caller ID of the call', async () => {
    expect(await judged({ to: 'tel:+4930123456' })).toEqual({
      ok: true,
      transfer: {
        ...{ to: { kind: 'tel', number: '4930123456' }, trunk: 'carrier', caller: '15550001111' },
        ...{ mode: 'bridge', timeoutMs: 30_000, keepStream: false, onFailure: 'hangup' },
      },
    });
  });

  test('has the members that the command sets', async () => {
    const wanted = { mode: 'bridge', timeoutMs: 5_000, keepStream: true, onFailure: 'stay' };
    const headers = { 'X-Ticket': '7' };
    const to = 'sip:agents@pbx.example:5070';

    expect(await judged({ to, ...wanted, headers, caller: '4930' })).toEqual({
      ok: true,
      transfer: {
        ...{ ...wanted, headers, caller: '4930' },
        to: { kind: 'sip', user: 'agents', host: 'pbx.example', port: 5_070 },
      },
    });
  });

  test.each<[string, object, string]>([
    ['a trunk that does not exist', { trunk: 'none' }, 'trunk'],
    ['a trunk for a referral', { trunk: 'carrier', mode: 'refer' }, 'trunk'],
    ['a header of the gateway', { headers: { 'Refer-To': 'sip:x@y.example' } }, 'headers.Refer-To'],
    ['a header that needs trust', { headers: { Privacy: 'id' } }, 'headers.Privacy'],
  ])('with %s is refused, and names the member', async (_name, members, path) => {
    expect(await judged({ to: 'sip:agents@pbx.example', ...members })).toMatchObject({
      ok: false,
      refusal: { code: 'invalid', error: expect.stringContaining(path), errors: [{ path }] },
    });
  });

  test.each(['bridge', 'refer'])('%s: is limited to the numbers of the app', async (mode) => {
    known = { limits: { allowedPrefixes: ['49'], deniedPrefixes: ['49900'] } };
    const forbidden = { ok: false, refusal: { ok: false, code: 'forbidden' } };

    expect(await judged({ mode, to: 'tel:+4930123456' })).toMatchObject({ ok: true });
    expect(await judged({ mode, to: 'tel:+49900123456' })).toMatchObject(forbidden);
    expect(await judged({ mode, to: 'sip:+882123456@pbx.example' })).toMatchObject(forbidden);
    expect(await judged({ mode, to: 'sip:agents@pbx.example' })).toMatchObject(forbidden);
  });

  test('is refused if the app was revoked; while SQL is unreachable, the second leg checks again', async () => {
    known = undefined;
    expect(await judged({ to: 'tel:+4930123456' })).toMatchObject({
      refusal: { code: 'forbidden' },
    });
    known = new Error('no connection');
    expect(await judged({ to: 'tel:+4930123456' })).toMatchObject({ ok: true });
  });

  test('to a number without + reads it by the settings of the app, or by its own', async () => {
    const dialled = { ok: true, transfer: { to: { kind: 'tel', number: '12025550105' } } };
    const to = 'tel:2025550105';

    expect(await judged({ to })).toMatchObject({
      refusal: { code: 'invalid', errors: [{ path: 'to', message: expect.any(String) }] },
    });
    expect(await judged({ to, defaultCountry: 'US' })).toMatchObject(dialled);
    known = { defaultCountry: 'US' };
    expect(await judged({ to })).toMatchObject(dialled);
  });

  test('to a number without + is refused while SQL is unreachable, if its reading depends on the app', async () => {
    known = new Error('no connection');
    const to = 'tel:12025550105';

    expect(await judged({ to })).toMatchObject({ ok: false, refusal: { code: 'internal' } });
    expect(await judged({ to, defaultCountry: 'US' })).toMatchObject({ ok: true });
  });
});
