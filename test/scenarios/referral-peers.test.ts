// A REFER to sipp, an independent SIP implementation. The far end accepts it, refuses it, ignores
// it or hangs up at the same time. sipp checks that every message matches its scenario. No far end
// is hung up twice.

import { describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { forSuite } from '../support/opened.ts';
import type { Sipp } from '../support/sipp.ts';
import {
  answer,
  bye,
  byeAnswered,
  hungUp,
  notify,
  referred,
  type SippStep,
  startInDialog,
} from '../support/sipp-steps.ts';
import { startStreamRig } from '../support/streams/stream-rig.ts';

const to = 'sip:agents@pbx.example';
const accepted = answer('202 Accepted');
const silentAtOnce = [accepted, hungUp];
const silentLater = [accepted, notify('active', 'SIP/2.0 100 Trying'), hungUp];
const fallsSilent: ReadonlySet<readonly SippStep[]> = new Set([silentAtOnce, silentLater]);
const done = notify('terminated;reason=noresource', 'SIP/2.0 200 OK');

const rig = forSuite(startStreamRig);

async function refer(far: Sipp, bridge: Readonly<Record<string, unknown>> = {}) {
  const { callId } = await rig.laptop.dial(far.uri(), {
    ...{ machineDetection: 'disabled', stream: null },
    bridge: { to, mode: 'refer', ...bridge },
  });
  return callId;
}

/** Counts the BYEs of both sides. Retransmissions count once. */
async function byesOf(far: Sipp): Promise<number> {
  const byes = (await far.messages()).filter(({ text }) => text.startsWith('BYE '));
  return new Set(byes.map(({ text }) => /branch=([^;\s]+)/.exec(text)?.[1])).size;
}

async function expectPlayedWhole(far: Sipp): Promise<void> {
  expect(await far.exited).toEqual({ code: 0, errors: '' });
  expect(await byesOf(far)).toBe(1);
}

describe.concurrent('sipp accepts a REFER', () => {
  test.each<[string, readonly SippStep[]]>([
    [
      'and reports each response to its own INVITE',
      [
        accepted,
        notify('active;expires=60', 'SIP/2.0 100 Trying'),
        notify('active;expires=58', 'SIP/2.0 180 Ringing'),
        done,
        hungUp,
      ],
    ],
    ['with a 200', [answer('200 OK'), done, hungUp]],
    ['and reports only the end', [accepted, done, hungUp]],
    ['and reports the end before it accepts the REFER', [done, accepted, hungUp]],
    [
      'and first reports nothing, as RFC 3515 allows',
      [notify('pending'), accepted, notify('active'), done, hungUp],
    ],
    [
      'and keeps its subscription after the end',
      [accepted, notify('active;expires=60', 'SIP/2.0 200 OK'), hungUp],
    ],
    [
      'and uses short header names',
      [
        accepted,
        notify('terminated', 'SIP/2.0 200 OK', {
          event: 'o: refer',
          type: 'c: message/sipfrag',
        }),
        hungUp,
      ],
    ],
    [
      'and reports the whole response to its INVITE',
      [
        accepted,
        notify(
          'terminated;reason=noresource',
          'SIP/2.0 200 OK\nContact: <sip:agents@pbx.example>\nServer: x',
        ),
        hungUp,
      ],
    ],
    ['and hangs up', [accepted, bye, byeAnswered]],
    [
      'and says that it will report nothing (RFC 4488), and hangs up',
      [answer('202 Accepted', ['Refer-Sub: false']), bye, byeAnswered],
    ],
    [
      'and hangs up when it has only begun to call',
      [accepted, notify('active', 'SIP/2.0 100 Trying'), bye, byeAnswered],
    ],
  ])('%s: transferred', async (_, steps) => {
    await using far = await startInDialog([referred, ...steps]);
    const callId = await refer(far);

    expect(await rig.endOf(callId)).toMatchObject({
      ...{ outcome: 'transferred', reason: '200 OK', reasonCode: 'Bot-disconnected' },
      transfer: { mode: 'refer', to, outcome: 'transferred' },
    });
    expect(rig.typesOf(callId).filter((type) => type !== 'transfer-ringing')).toEqual([
      ...['queued', 'dialing', 'answered', 'transfer-answered', 'transfer-completed', 'completed'],
    ]);
    await expectPlayedWhole(far);
  });

  test.each<[string, readonly SippStep[], string, number | undefined]>([
    [
      'and the agent is busy',
      [accepted, notify('terminated;reason=noresource', 'SIP/2.0 486 Busy Here'), hungUp],
      'busy',
      486,
    ],
    [
      'and the agent declines, reported before the 202',
      [notify('terminated', 'SIP/2.0 603 Decline'), accepted, hungUp],
      'declined',
      603,
    ],
    [
      'and ends its subscription without a status',
      [accepted, notify('terminated;reason=giveup'), hungUp],
      'unknown',
      undefined,
    ],
    [
      'and ends its subscription while it rings',
      [
        accepted,
        notify('active', 'SIP/2.0 180 Ringing'),
        notify('terminated;reason=timeout', 'SIP/2.0 180 Ringing'),
        hungUp,
      ],
      'unknown',
      undefined,
    ],
    ['and falls silent', silentAtOnce, 'unknown', undefined],
    ['and falls silent when it has begun to call', silentLater, 'unknown', undefined],
  ])('%s: the call is hung up', async (_, steps, outcome, sipStatus) => {
    await using far = await startInDialog([referred, ...steps]);
    // Only a far end that falls silent uses its whole time-out. For the others, the time-out must
    // be long enough for the first message of a slow far end.
    const callId = await refer(far, { timeoutMs: fallsSilent.has(steps) ? 3_000 : 20_000 });

    const { transfer, ...end } = await rig.endOf(callId);
    expect(end).toMatchObject({ outcome: 'completed', reasonCode: 'Bot-disconnected' });
    expect(transfer).toEqual({
      ...{ to, mode: 'refer', outcome },
      ...(sipStatus === undefined ? {} : { sipStatus }),
    });
    await expectPlayedWhole(far);
  });
});

describe.concurrent('sipp does not accept a REFER', () => {
  test.each<[string, string, number]>([
    ['603 Decline', 'declined', 603],
    ['405 Method Not Allowed', 'rejected', 405],
    ['501 Not Implemented', 'carrier-failure', 501],
    ['407 Proxy Authentication Required', 'rejected', 407],
  ])('%s: the call is hung up', async (status, outcome, sipStatus) => {
    await using far = await startInDialog([referred, answer(status), hungUp]);
    const callId = await refer(far);

    const { transfer } = await rig.endOf(callId);
    expect(transfer).toEqual({ to, mode: 'refer', outcome, sipStatus });
    await expectPlayedWhole(far);
  });

  test('and ignores it: the transfer is given up within its time-out', async () => {
    await using far = await startInDialog([referred, hungUp]);
    const callId = await refer(far, { timeoutMs: 1_000 });

    const { transfer } = await rig.endOf(callId);
    expect(transfer).toEqual({ to, mode: 'refer', outcome: 'gateway-failure' });
    await expectPlayedWhole(far);
  });
});

describe.concurrent('a BYE crosses the REFER', () => {
  test.each<[string, readonly SippStep[]]>([
    ['which is refused', [bye, byeAnswered, answer('481 Call/Transaction Does Not Exist')]],
    ['which is accepted', [bye, byeAnswered, accepted]],
    ['which is not answered', [bye, byeAnswered]],
  ])('%s: the person has hung up', async (_, steps) => {
    await using far = await startInDialog([referred, ...steps]);
    const callId = await refer(far);

    expect(await rig.endOf(callId)).toMatchObject({
      ...{ outcome: 'completed', reasonCode: 'Caller-disconnected' },
      transfer: { outcome: 'cancelled' },
    });
    await expectPlayedWhole(far);
  });

  test('the application hangs up before the REFER is answered', async () => {
    await using far = await startInDialog([referred, hungUp, answer('202 Accepted')]);
    const callId = await refer(far);
    const isReferred = async () =>
      (await far.messages()).some(({ text }) => text.startsWith('REFER '));
    await eventually(isReferred, 'sipp has received the REFER');
    await rig.laptop.gateway.dialer.end(callId);

    expect(await rig.endOf(callId)).toMatchObject({
      ...{ outcome: 'completed', reasonCode: 'Bot-disconnected' },
      transfer: { outcome: 'cancelled' },
    });
    await expectPlayedWhole(far);
  });
});
