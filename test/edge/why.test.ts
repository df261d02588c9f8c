// Why a call ended, as the far end says it over SIP.

import { afterEach, describe, expect, test } from 'vitest';
import { endOfFailure, faultOf } from '../../src/calls/life/call-outcome.ts';
import { answer, openTrunkWorld, type TrunkWorld } from '../sip/trunk-world.ts';

let world: TrunkWorld | undefined;

afterEach(async () => {
  await world?.[Symbol.asyncDispose]();
  world = undefined;
});

async function open() {
  world = await openTrunkWorld();
  const [first, second] = world.gateways;
  if (first === undefined || second === undefined) throw new Error('two gateways');
  return { ...world, first, second };
}

async function refuse(status: number, reason: string, headers: readonly string[]) {
  const { place, first, second } = await open();
  const { leg, observer } = place();
  first.reply(await first.take('INVITE'), status, reason, { headers });
  const { failure } = await observer.until('failed');
  await leg.released;
  return { failure, end: endOfFailure(failure), second };
}

async function answered(headers: readonly string[] = []) {
  const opened = await open();
  const { leg, observer } = opened.place();
  const invite = await opened.first.take('INVITE');
  opened.first.reply(invite, 200, 'OK', { body: answer, headers });
  await observer.until('answered');
  leg.acknowledge();
  await opened.first.take('ACK');
  return { ...opened, leg, observer, invite };
}

const analytics = 'v=analytics1;url=https://redress.example/a;tel=+12025550199;id=4711';

describe('a 603', () => {
  test.each([
    ['Network Blocked', `Reason: SIP;cause=603;text="${analytics}";location=RLN`],
    ['Network Blocked', `Reason: Q.850;cause=21;location=RLN;text="${analytics}"`],
    ['Decline', `Reason: SIP ;cause=603 ;text="${analytics}" ;location=RLN`],
  ])('%s with %s is blocked, and no other gateway is tried', async (phrase, header) => {
    const { end, failure, second } = await refuse(603, phrase, [header]);

    expect(end).toMatchObject({ outcome: 'blocked', reasonCode: 'Service Unavailable' });
    expect(faultOf(end)).toBe('carrier');
    expect(failure.facts?.block).toEqual({
      by: 'redress.example',
      url: 'https://redress.example/a',
      tel: '+12025550199',
      id: '4711',
      location: 'RLN',
      raw: expect.stringContaining(analytics) as string,
    });
    expect(second.inbox).toEqual([]);
  });

  test('without these signs is the callee’s refusal', async () => {
    const { end, failure } = await refuse(603, 'Decline', ['Reason: Q.850;cause=21']);
    expect(end.outcome).toBe('declined');
    expect(failure.facts).toEqual({ cause: { q850: 21 } });
  });
});

test('a 608 is blocked', async () => {
  const { end, failure, second } = await refuse(608, 'Rejected', [
    'Call-Info: <https://block.example.net/card>;purpose=jwscard',
  ]);
  expect(end.outcome).toBe('blocked');
  expect(failure.facts?.block).toMatchObject({ by: 'block.example.net' });
  expect(second.inbox).toEqual([]);
});

describe('a refusal', () => {
  test('with several Reasons, a Retry-After and a Warning', async () => {
    const { failure } = await refuse(480, 'Temporarily Unavailable', [
      'Reason: SIP;cause=480;text="Do Not Disturb"',
      'Reason: Q.850;cause=19',
      'Retry-After: 90',
      'Warning: 399 pbx.example "Do not disturb until 5"',
    ]);
    expect(failure.facts).toEqual({
      cause: { q850: 19, sip: 480, text: 'Do Not Disturb' },
      retryAfterS: 90,
      warning: '399 Do not disturb until 5',
    });
  });

  test('without any has no facts', async () => {
    expect((await refuse(486, 'Busy Here', [])).failure).not.toHaveProperty('facts');
  });

  test('at a gateway that was given up keeps its cause', async () => {
    const { place, first, second } = await open();
    const { leg, observer } = place();
    first.reply(await first.take('INVITE'), 503, 'Service Unavailable', {
      headers: ['Reason: Q.850;cause=34;text="No circuit available"'],
    });
    second.reply(await second.take('INVITE'), 486, 'Busy Here');
    const { attempt } = await observer.until('attemptFailed');
    expect(attempt.cause).toEqual({ q850: 34, text: 'No circuit available' });
    expect((await observer.until('failed')).failure).not.toHaveProperty('facts');
    await leg.released;
  });

  test('after a 183 whose Reason explains it', async () => {
    const { place, first } = await open();
    const { leg, observer } = place();
    const invite = await first.take('INVITE');
    first.reply(invite, 183, 'Session Progress', {
      headers: ['Reason: Q.850;cause=1;text="Unallocated number"'],
    });
    const stated = await observer.until('stated');
    first.reply(invite, 404, 'Not Found');
    await observer.until('failed');
    await leg.released;
    expect(stated.cause).toEqual({ q850: 1, text: 'Unallocated number' });
    expect(observer.kinds()).toEqual(['sent', 'stated', '183', 'failed']);
  });
});

describe('a hang-up', () => {
  test('says why', async () => {
    const { first, invite, leg, observer } = await answered();
    first.request(invite, 'BYE', {
      headers: ['Reason: Q.850;cause=31;text="Normal, unspecified"'],
    });
    const { end } = await observer.until('ended');
    await leg.released;
    expect(end).toMatchObject({
      by: 'remote',
      facts: { cause: { q850: 31, text: 'Normal, unspecified' } },
    });
  });

  test('does not have to say why', async () => {
    const { first, invite, leg, observer } = await answered();
    first.request(invite, 'BYE');
    expect((await observer.until('ended')).end).not.toHaveProperty('facts');
    await leg.released;
  });
});

describe('the connected identity', () => {
  test('is that of the last message before the answer, and may change later', async () => {
    const { place, first } = await open();
    const { leg, observer } = place();
    const invite = await first.take('INVITE');
    const asserted = (number: string) => [`P-Asserted-Identity: <sip:${number}@carrier.example>`];
    first.reply(invite, 180, 'Ringing', { headers: asserted('+12025550111') });
    first.reply(invite, 200, 'OK', { body: answer, headers: asserted('+12025550112') });
    await observer.until('answered');
    leg.acknowledge();
    await first.take('ACK');
    first.request(invite, 'INVITE', { body: answer, headers: asserted('+12025550113') });
    await observer.until('reoffer');
    leg.hangUp('done');
    first.reply(await first.take('BYE'), 200, 'OK');
    await leg.released;

    const events = observer.events.map((event) =>
      event.kind === 'stated' ? event.connectedIdentity : event.kind,
    );
    expect(events).toEqual([
      ...['sent', '+12025550111', 'provisional', '+12025550112', 'answered'],
      ...['+12025550113', 'reoffer', 'ended'],
    ]);
  });
});
