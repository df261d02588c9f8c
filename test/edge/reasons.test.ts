// Reason phrases and Reason headers of any length, and with control characters. The far end chooses
// them, and they end up in events, notifications and logs.

import { expect, onTestFinished, test } from 'vitest';
import type { LegEvent } from '../../src/calls/ports.ts';
import { boundedLegEvent } from '../../src/sip/legs/bounded-reasons.ts';
import { answer, openTrunkWorld } from '../sip/trunk-world.ts';

/** Drachtio-server drops messages that are much longer. */
const long = 'x'.repeat(4_000);
const bounded = 'x'.repeat(200);

async function invited(gateways = 1) {
  const world = await openTrunkWorld({ gateways });
  onTestFinished(() => world[Symbol.asyncDispose]());
  const [callee, second] = world.gateways;
  if (callee === undefined) throw new Error('no gateway');
  const { leg, observer } = world.place();
  return { callee, second, leg, observer, invite: await callee.take('INVITE') };
}

test('a refusal’s reason phrase has at most 200 characters', async () => {
  const { callee, invite, observer } = await invited();

  callee.reply(invite, 486, long);

  expect((await observer.until('failed')).failure).toMatchObject({ reason: bounded });
});

test('so has a failed attempt’s', async () => {
  const { callee, second, invite, observer } = await invited(2);

  callee.reply(invite, 503, long);

  await second?.take('INVITE');
  expect((await observer.until('attemptFailed')).attempt).toMatchObject({ reason: bounded });
});

test('so has a provisional response’s', async () => {
  const { callee, invite, observer } = await invited();

  callee.reply(invite, 180, long);

  expect(await observer.until('provisional')).toMatchObject({ reason: bounded });
});

test.each([
  ['a Reason’s text', 4_000, bounded],
  ['a short text', 3, 'xxx'],
])('%s in a BYE has at most 200 characters', async (_, length, reason) => {
  const { callee, invite, leg, observer } = await invited();
  callee.reply(invite, 200, 'OK', { body: answer });
  await observer.until('answered');
  leg.acknowledge();
  await callee.take('ACK');

  const text = 'x'.repeat(length);
  callee.request(invite, 'BYE', { headers: [`Reason: Q.850;cause=16;text="${text}"`] });

  expect((await observer.until('ended')).end).toMatchObject({ by: 'remote', reason });
});

const at = new Date(0);
const failed = (reason: string): LegEvent => {
  return { kind: 'failed', failure: { at, sipStatus: 500, kind: 'response', reason } };
};
const reasonOf = (event: LegEvent) => (event.kind === 'failed' ? event.failure.reason : undefined);

test.each([
  ['100 kB', 'y'.repeat(100_000), 'y'.repeat(200)],
  ['control characters', 'Busy\u0000\u001b[31m\r\n Here\u0085', 'Busy [31m Here'],
  ['a code point at the end that needs two units', `${'z'.repeat(199)}😀`, 'z'.repeat(199)],
])('a reason with %s is bounded, on one line and well-formed', (_, reason, expected) => {
  expect(reasonOf(boundedLegEvent(failed(reason)))).toBe(expected);
});
