// A process dies at each step of a transfer, before and after SQL has stored it: at each INVITE,
// 200, ACK, REFER and NOTIFY. The next process brings the call to its one end, and hangs up once
// each far end that was left in it.

import { describe, expect, test } from 'vitest';
import type { TransferPlan } from '../../src/calls/transfer/transfer.ts';
import { expectOneWholeStory } from '../support/crashed-call.ts';
import { DialoutWorld } from '../support/dialout-world.ts';
import { MortalOutbox, mortalOwner } from '../support/mortal-outbox.ts';
import { randomOf } from '../support/random-call.ts';
import { acceptedCall, scriptCall, storedLeg } from '../support/scripted-call.ts';

const second = { ...storedLeg, sipCallId: 'second-call-id', transactionId: 'transaction-2' };
const plan: TransferPlan = {
  ...{ to: { kind: 'tel', number: '15550177' }, mode: 'bridge', timeoutMs: 10_000, on: 'answered' },
  ...{ caller: '15550199', keepStream: false, onFailure: 'hangup' },
};

type Call = ReturnType<typeof scriptCall>;
type Step = readonly [name: string, happens: (call: Call) => unknown];

const answered: readonly Step[] = [
  ['INVITE', (call) => call.sent()],
  ['180', (call) => call.ring()],
  ['200 and its ACK', (call) => call.answer()],
];
const secondAnswered = (call: Call) =>
  call.secondLeg().observe({
    ...{ kind: 'answered', sdp: 'sdp', at: call.now() },
    leg: { ...second, dialogId: 'dialog-2' },
  });
const bridged: readonly Step[] = [
  ...answered,
  [
    'second INVITE',
    (call) =>
      call.secondLeg().observe({ kind: 'sent', gateway: 'gw', leg: second, at: call.now() }),
  ],
  [
    'second 180',
    (call) =>
      call
        .secondLeg()
        .observe({ kind: 'provisional', status: 180, reason: 'Ringing', at: call.now() }),
  ],
  ['second 200 and its ACK', secondAnswered],
];
const referred: readonly Step[] = [
  ...answered,
  ['202 to the REFER', (call) => call.referral()({ kind: 'progress', sipStatus: 202 })],
  ['NOTIFY 180', (call) => call.referral()({ kind: 'progress', sipStatus: 180 })],
  ['NOTIFY 200', (call) => call.referral()({ kind: 'taken over' })],
];
const agentHangsUp = (call: Call) =>
  call.secondLeg().observe({ kind: 'ended', end: { at: call.now(), by: 'remote', reason: 'BYE' } });

const secondBusy = (call: Call) =>
  call.secondLeg().observe({
    kind: 'failed',
    failure: { at: call.now(), sipStatus: 486, reason: 'Busy Here', kind: 'response' },
  });

const stories: readonly (readonly [string, TransferPlan['mode'], readonly Step[]])[] = [
  ['bridged, and the agent hangs up', 'bridge', [...bridged, ['BYE', agentHangsUp]]],
  ['bridged, and the person hangs up', 'bridge', [...bridged, ['BYE', (call) => call.remoteBye()]]],
  [
    'not bridged, because the agent is busy',
    'bridge',
    [...bridged.slice(0, -1), ['486', secondBusy]],
  ],
  ['referred', 'refer', referred],
  [
    'not referred',
    'refer',
    [
      ...answered,
      [
        '603 to the REFER',
        (call) =>
          call.referral()({
            kind: 'failed',
            failure: { at: call.now(), sipStatus: 603, reason: 'Decline', kind: 'response' },
          }),
      ],
    ],
  ],
  [
    'referred, and the person hangs up in between',
    'refer',
    [...referred.slice(0, -2), ['BYE', (call) => call.remoteBye()]],
  ],
];

/**
 * What SQL has stored of the last step when the process dies, and whether the process knows that.
 */
const moments = ['nothing', 'stored without an answer', 'stored and answered'] as const;

async function settle(call: Call): Promise<void> {
  for (let turn = 0; turn < 4; turn += 1) await call.settle();
}

/** Stores all that the machine has for SQL, and runs what follows from that. */
async function store(call: Call, outbox: MortalOutbox): Promise<void> {
  for (let turn = 0; turn < 4; turn += 1) {
    for (const does of ['begin', 'commit', 'confirm'] as const) outbox[does]();
    await settle(call);
  }
}

async function dieAfter(
  mode: TransferPlan['mode'],
  steps: readonly Step[],
  moment: (typeof moments)[number],
) {
  const world = new DialoutWorld();
  const accepted = acceptedCall();
  world.accept(accepted);
  world.take(accepted.callId, mortalOwner);
  const outbox = new MortalOutbox(world, accepted);
  const bridge = { ...plan, mode };
  const call = scriptCall({ outbox, request: { machineDetection: 'disabled', bridge } });
  await store(call, outbox);
  for (const [, happens] of steps.slice(0, -1)) {
    await happens(call);
    await settle(call);
    await store(call, outbox);
  }
  await steps.at(-1)?.[1](call);
  await settle(call);
  if (moment === 'stored and answered') await store(call, outbox);
  else if (moment !== 'nothing') {
    outbox.begin();
    outbox.commit();
  }
  const log = [...call.log];
  call.actor.stop();
  return { world, outbox, row: world.row(accepted.callId), random: randomOf(1), log };
}

/** Returns the Call-IDs of the legs that were acknowledged and not hung up so far. */
function talking(log: readonly string[], steps: readonly Step[], who: string): readonly string[] {
  const hasHungUp = (whose: string) => steps.at(-1)?.[0] === 'BYE' && who.includes(whose);
  const isUp = (prefix: string) => log.includes(`${prefix}ack`) && !log.includes(`${prefix}bye`);
  return [
    ...(isUp('') && !hasHungUp('the person') ? [storedLeg.sipCallId] : []),
    ...(isUp('second ') && !hasHungUp('the agent') ? [second.sipCallId] : []),
  ];
}

describe.each(stories)('a call that is %s', (who, mode, all) => {
  const deaths = all.flatMap(([name], index) =>
    moments.map((moment) => [name, moment, all.slice(0, index + 1)] as const),
  );

  test.each(deaths)(
    'ends once if its process dies after %s, with the last step: %s',
    async (_n, moment, steps) => {
      const crashed = await dieAfter(mode, steps, moment);
      const hasEnd = crashed.row.end !== undefined;
      const { hungUp } = await expectOneWholeStory(crashed);

      // A far end that has hung up is not hung up again, once SQL has stored that.
      if (hasEnd && steps.at(-1)?.[0] === 'BYE' && who.includes('the person')) {
        expect(hungUp).not.toContain(storedLeg.sipCallId);
      }

      expect(hungUp).toEqual(expect.arrayContaining([...talking(crashed.log, steps, who)]));
      expect(new Set(hungUp).size).toBe(hungUp.length);
      for (const leg of ['bye', 'second bye', 'ack', 'second ack', 'refer']) {
        expect(crashed.log.filter((line) => line === leg).length, leg).toBeLessThanOrEqual(1);
      }
    },
  );

  test('hangs up each end once if its process lives, unless the end hung up', async () => {
    const { log, row } = await dieAfter(mode, all, 'stored and answered');

    expect(talking(log, all, who)).toEqual([]);
    expect(row.end).toBeDefined();
  });
});
