// The gateway asks the far end of a call by REFER to call an agent: the reports of the far end, in
// all forms that carriers use, and the outcome of the call. The tests use the whole gateway with
// its embedded engine, and a phone on loopback.

import { afterEach, describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { forSuite } from '../support/opened.ts';
import { one } from '../support/raw-callee.ts';
import { startStreamRig } from '../support/streams/stream-rig.ts';

const target = 'sip:agents@pbx.example';

const rig = forSuite(startStreamRig);
afterEach(() => rig.reset());

/** Dials a person, who answers. The REFER is then on its way. */
async function referring(bridge: Readonly<Record<string, unknown>> = {}) {
  const { callee: person, callId } = await rig.call(null, {
    bridge: { to: target, mode: 'refer', ...bridge },
  });
  await person.answer();
  return { person, callId };
}

const transferEvents = ['queued', 'dialing', 'answered', 'transfer-answered', 'transfer-completed'];

describe('a REFER that is accepted', () => {
  test('names the agent to call, and ends the call as transferred after the agent’s answer', async () => {
    const { person, callId } = await referring();
    const refer = await person.isReferred(202);
    expect(one(refer, 'refer-to')).toBe(`<${target}>`);
    expect(one(refer, 'referred-by')).toMatch(/^<sip:.+@.+>$/);
    for (const line of ['SIP/2.0 100 Trying', 'SIP/2.0 180 Ringing']) {
      expect(await person.notify(line, 'active;expires=60')).toBe(200);
    }
    expect(await person.notify('SIP/2.0 200 OK\r\n', 'terminated;reason=noresource')).toBe(200);
    await person.isHungUp();

    expect(await rig.endOf(callId)).toMatchObject({
      ...{ reason: '200 OK', reasonCode: 'Bot-disconnected', outcome: 'transferred' },
      transfer: { to: target, mode: 'refer', outcome: 'transferred' },
    });
    expect(rig.typesOf(callId)).toEqual([
      ...['queued', 'dialing', 'answered', 'transfer-ringing', 'transfer-answered'],
      ...['transfer-completed', 'completed'],
    ]);
  });

  test('may be reported on before it is answered, and with the id of the REFER', async () => {
    const { person, callId } = await referring();
    const refer = await person.isReferred();
    const id = Number.parseInt(one(refer, 'cseq'), 10);
    expect(await person.notify('SIP/2.0 200 OK', 'terminated', `refer;id=${id}`)).toBe(200);
    await person.isHungUp();

    expect(await rig.endOf(callId)).toMatchObject({ outcome: 'transferred' });
  });

  test('may be followed only by a BYE, which counts as transferred', async () => {
    const { person, callId } = await referring();
    await person.isReferred(202);
    await person.notify('SIP/2.0 100 Trying', 'active');
    person.hangUp();

    expect(await rig.endOf(callId)).toMatchObject({
      ...{ reasonCode: 'Bot-disconnected', outcome: 'transferred' },
      transfer: { outcome: 'transferred' },
    });
    expect(rig.typesOf(callId)).toEqual([...transferEvents, 'completed']);
    expect(person.isBeingHungUp).toBe(false);
  });

  test('leaves the call up if the agent is busy and the request says so', async () => {
    const { person, callId } = await referring({ onFailure: 'stay' });
    await person.isReferred(202);
    await person.notify('SIP/2.0 486 Busy Here', 'terminated;reason=noresource');
    await eventually(
      () => rig.typesOf(callId).includes('transfer-failed'),
      'transfer-failed is published',
    );
    expect(person.isBeingHungUp).toBe(false);
    person.hangUp();

    expect(await rig.endOf(callId)).toMatchObject({
      ...{ reasonCode: 'Caller-disconnected', outcome: 'completed' },
      transfer: { outcome: 'busy', sipStatus: 486 },
    });
  });

  // The time-out also applies to the 202. If a test uses it up, it is as short as a machine that
  // stands still allows.
  test.each([
    ['a subscription that ends without a status', 'terminated;reason=giveup', 20_000],
    ['silence', undefined, 3_000],
  ])('%s is distinguished from a failure', async (_, state, timeoutMs) => {
    const { person, callId } = await referring({ timeoutMs });
    await person.isReferred(202);
    if (state !== undefined) await person.notify('SIP/2.0 100 Trying', state);
    await person.isHungUp();

    expect(await rig.endOf(callId)).toMatchObject({
      outcome: 'completed',
      transfer: { outcome: 'unknown' },
    });
  });

  test('rejects NOTIFYs of other events, and does not take a malformed NOTIFY for an end', async () => {
    const { person, callId } = await referring();
    await person.isReferred(202);
    expect(await person.notify('SIP/2.0 200 OK', 'active', 'presence')).toBe(489);
    expect(await person.notify('HTTP/1.1 200 OK', 'active')).toBe(200);
    expect(await person.notify('SIP/2.0 2000 OK', 'active')).toBe(200);
    await person.notify('SIP/2.0 200 OK', 'terminated');
    await person.isHungUp();
    await rig.endOf(callId);

    expect(rig.typesOf(callId)).toEqual([...transferEvents, 'completed']);
  });
});

describe('a REFER that is not accepted', () => {
  test.each([
    [603, 'Decline', 'declined'],
    [405, 'Method Not Allowed', 'rejected'],
  ])('%i %s: the call is hung up', async (status, reason, outcome) => {
    const { person, callId } = await referring();
    await person.isReferred(status, reason);
    await person.isHungUp();

    expect(await rig.endOf(callId)).toMatchObject({
      ...{ outcome: 'completed', reasonCode: 'Bot-disconnected' },
      transfer: { outcome, sipStatus: status },
    });
  });

  test('and not answered is given up within its time-out', async () => {
    const { person, callId } = await referring({ timeoutMs: 1_000 });
    await person.isReferred();
    await person.isHungUp();

    const { transfer } = await rig.endOf(callId);
    expect(transfer).toMatchObject({ outcome: 'gateway-failure' });
    expect(transfer).not.toHaveProperty('sipStatus');
  });

  test('because the person has hung up is not a transfer', async () => {
    const { person, callId } = await referring();
    person.hangUp();

    expect(await rig.endOf(callId)).toMatchObject({
      ...{ reasonCode: 'Caller-disconnected', outcome: 'completed' },
      transfer: { outcome: 'cancelled' },
    });
  });

  test('leaves the bot in the call, and notifies it', async () => {
    const bot = await rig.startBot();
    const { callee: person, callId } = await rig.call(
      { url: bot.url },
      { bridge: { to: target, mode: 'refer' } },
    );
    await person.answer();
    await person.isReferred(603, 'Decline');
    const connection = await bot.connection();
    await eventually(
      () => connection.texts.some((text) => text.includes('"transfer-failed"')),
      'the bot is notified',
    );
    expect(person.isBeingHungUp).toBe(false);
    person.hangUp();
    await rig.endOf(callId);
  });
});
