// How late packets leave, which each worker counts.

import { expect, test } from 'vitest';
import { addLateness, SendLateness } from '../../../src/media/playout/send-lateness.ts';
import { eventually } from '../../support/eventually.ts';
import { freePortRange } from '../../support/free-port.ts';
import { FarEnd } from '../support/far-end.ts';
import { answerFor, callId, createScripted } from '../support/gateway.ts';
import { observe, settingsFor } from '../support/observed.ts';
import { script } from '../support/scripted-detector.ts';

const packetsFrom = (packetsByMs: readonly number[], fromMs: number): number =>
  packetsByMs.slice(fromMs).reduce((total, packets) => total + packets, 0);

test('is counted in bins of a millisecond, and added up over workers', () => {
  const [one, other] = [new SendLateness(), new SendLateness()];
  one.note(0.4, 2);
  one.note(3.9, 1);
  one.note(1_000, 1);
  other.note(3, 5);
  other.note(-0.2, 1);

  const { packetsByMs, sumMs } = addLateness([one.read(), other.read()]);
  expect(packetsByMs.slice(0, 5)).toEqual([3, 0, 0, 6, 0]);
  expect(packetsFrom(packetsByMs, 5)).toBe(1);
  expect(sumMs).toBeCloseTo(0.8 + 3.9 + 1_000 + 15);
});

test('has every packet that a call sends at a tick, and shows when the thread was busy', async () => {
  await using ports = await freePortRange(20);
  await using media = createScripted({ ...ports });
  await using farEnd = await FarEnd.open();
  const open = async () => {
    const session = await media.open(callId, observe());
    session?.applyAnswer(answerFor(farEnd.port), 'answer');
    return session;
  };
  await open();
  await eventually(() => farEnd.received.length > 20, 'the far end hears silence');
  (await open())?.send({ kind: 'detect', settings: settingsFor(script.blocks) });

  await eventually(async () => {
    const { sendLateness, ticksLate } = await media.statistics();
    return ticksLate > 0 && packetsFrom(sendLateness.packetsByMs, 20) > 0;
  }, 'packets left late after the detector kept the thread busy');
  const { packetsSent, sendLateness } = await media.statistics();
  expect(packetsFrom(sendLateness.packetsByMs, 0)).toBe(packetsSent);
});
