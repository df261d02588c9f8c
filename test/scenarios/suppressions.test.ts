// Suppressions with a whole gateway and phones on loopback: a ringing phone falls silent, and no
// INVITE and no REFER leaves for a suppressed address.

import { afterEach, describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { forSuite } from '../support/opened.ts';
import { StreamCallee } from '../support/streams/stream-callee.ts';
import { startStreamRig } from '../support/streams/stream-rig.ts';
import { makeWav, sine } from '../support/wav.ts';

const rig = forSuite(startStreamRig);
afterEach(async () => {
  await rig.reset();
  for (const address of [phone, agent]) await suppression('DELETE', address);
});

/** The phones differ only in their ports, which suppressions ignore. */
const phone = 'sip:callee@127.0.0.1';
const agent = 'sip:agent@127.0.0.1';

async function suppression(method: 'PUT' | 'DELETE', address: string) {
  const { gateway } = rig.laptop;
  const url = `${gateway.runtime.httpUrl}/api/public/suppressions/${encodeURIComponent(address)}`;
  const response = await fetch(url, {
    method,
    headers: { auth: gateway.dialer.token, 'content-type': 'application/json' },
    ...(method === 'PUT' ? { body: JSON.stringify({ reason: 'opt-out', source: 'test' }) } : {}),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

const refused = {
  ...{ outcome: 'not-permitted', rule: 'suppressed', reasonCode: 'Service Unavailable' },
  reason: 'The number is suppressed',
};

describe('a suppression', () => {
  test('cancels a ringing call, and is answered when the call is off the wire', async () => {
    const { callee, callId } = await rig.call(null);
    callee.ring();
    await eventually(() => rig.typesOf(callId).includes('ringing'), 'the phone rings');

    const answered = suppression('PUT', `${phone}:9`);
    await callee.isCancelled();
    const { status, body } = await answered;

    expect(status).toBe(200);
    expect(body).toEqual({
      ...{ number: phone, reason: 'opt-out', source: 'test', appId: 'app-dev' },
      createdAt: expect.any(String),
    });
    expect(await rig.endOf(callId)).toMatchObject(refused);
  });

  test('names a call that rings on for ten seconds', async () => {
    const { callee, callId } = await rig.call(null);
    callee.ring();
    await eventually(() => rig.typesOf(callId).includes('ringing'), 'the phone rings');

    const { body } = await suppression('PUT', phone);
    await callee.isCancelled();

    expect(body['left']).toEqual([callId]);
    expect(await rig.endOf(callId)).toMatchObject(refused);
  });

  test('leaves an answered call alone', async () => {
    const { callee, callId } = await rig.call(null);
    await callee.answer();
    await eventually(() => rig.typesOf(callId).includes('answered'), 'the call is up');

    const { body } = await suppression('PUT', phone);
    callee.hangUp();

    expect(body).not.toHaveProperty('left');
    expect(await rig.endOf(callId)).toMatchObject({ outcome: 'completed' });
  });

  test('ends calls that come after it, without an INVITE', async () => {
    await suppression('PUT', phone);
    const silent = await StreamCallee.waiting();
    const target = silent.target.replace('agent', 'callee');

    const { callId } = await rig.laptop.dial(target, { stream: null });

    expect(await rig.endOf(callId)).toMatchObject(refused);
    expect(rig.typesOf(callId)).toEqual(['queued', 'failed']);
    expect(silent.isCalled()).toBe(false);
  });

  test.each(['bridge', 'refer'])('keeps a person from being connected by %s', async (mode) => {
    await suppression('PUT', agent);
    const waiting = await StreamCallee.waiting();
    const { callee, callId } = await rig.call(null, {
      bridge: { to: waiting.target, mode, onFailure: 'stay' },
    });
    await callee.answer();
    await eventually(() => rig.typesOf(callId).includes('transfer-failed'), 'the transfer fails');
    callee.hangUp();

    const failed = rig.eventsOf(callId).find(({ type }) => type === 'transfer-failed');
    expect(failed?.data).toMatchObject({
      ...{ outcome: 'not-permitted', reason: 'The number is suppressed' },
    });
    expect(await rig.endOf(callId)).toMatchObject({ transfer: { outcome: 'not-permitted' } });
    expect([waiting.isCalled(), callee.isBeingReferred]).toEqual([false, false]);
  });
});

describe('a key that opts out', () => {
  test('ends the call after its sound, and the next call is not dialled', async () => {
    const { gateway, receiver } = rig.laptop;
    await gateway.dialer.addSound('goodbye', makeWav({ samples: [sine(1_000, 8_000, 200)] }));
    const { callee, callId } = await rig.call(null, {
      ...{ optOutKey: '9', optOutSound: 'sound:goodbye' },
    });
    await callee.answer();
    await eventually(() => rig.typesOf(callId).includes('answered'), 'the call is up');

    callee.press(9);
    await callee.isHungUp();

    expect(await rig.endOf(callId)).toMatchObject({ outcome: 'completed', optedOut: true });
    expect(rig.typesOf(callId).filter((type) => /^(opted|playback|completed)/.test(type))).toEqual([
      ...['opted-out', 'playback-started', 'playback-finished', 'completed'],
    ]);
    const ofCall = () => receiver.received.filter(({ body }) => body['callId'] === callId);
    await eventually(() => ofCall().at(-1)?.body['optedOut'] === true, 'the last notification');

    const silent = await StreamCallee.waiting();
    const next = await rig.laptop.dial(silent.target.replace('agent', 'callee'), { stream: null });
    expect(await rig.endOf(next.callId)).toMatchObject(refused);
    expect(silent.isCalled()).toBe(false);
  });
});
