// What the carrier says about a call, from the leg to the notifications.

import { describe, expect, test } from 'vitest';
import { lineOf, notificationOf } from '../../../src/calls/contract/event-table.ts';
import { causeText } from '../../../src/calls/life/end-facts.ts';
import { rebuild } from '../../../src/recovery/rebuild.ts';
import { acceptedCall, scriptCall } from '../../support/scripted-call.ts';

const block = { by: 'a.example', url: 'https://a.example/', raw: 'SIP;text="v=analytics1"' };
const facts = {
  ...{ cause: { q850: 21, text: 'Call rejected' }, retryAfterS: 60 },
  ...{ warning: '399 no', block },
};

function failedWith(more: object) {
  return { kind: 'response', sipStatus: 603, reason: 'Network Blocked', ...more } as const;
}

describe('a refusal', () => {
  test('has its facts in the event, the notification and the timeline', async () => {
    const call = scriptCall();
    await call.sent();
    call.leg().observe({ kind: 'failed', failure: { at: call.now(), ...failedWith({ facts }) } });
    await call.settle();

    const end = call.end();
    expect(end.data).toMatchObject({
      outcome: 'blocked',
      reasonCode: 'Service Unavailable',
      ...facts,
    });
    expect(notificationOf(end)).toMatchObject({ status: 'Failed', outcome: 'blocked', ...facts });
    expect(lineOf(end.type, end.data)).toBe(
      '603 Network Blocked, Service Unavailable, blocked by a.example, Q.850 21 (Call rejected)',
    );
  });

  test('without a Reason has the cause of the last 18x', async () => {
    const call = scriptCall();
    await call.sent();
    call.leg().observe({ kind: 'stated', cause: { q850: 1 } });
    call.leg().observe({ kind: 'stated', connectedIdentity: '+12025550111' });
    const failure = { sipStatus: 404, reason: 'Not Found', kind: 'response' } as const;
    call.leg().observe({ kind: 'failed', failure: { at: call.now(), ...failure } });
    await call.settle();

    expect(call.end().data).toMatchObject({
      cause: { q850: 1 },
      connectedIdentity: '+12025550111',
    });
  });

  test('that says nothing adds no members', async () => {
    const call = scriptCall();
    await call.sent();
    const failure = { sipStatus: 486, reason: 'Busy Here', kind: 'response' } as const;
    call.leg().observe({ kind: 'failed', failure: { at: call.now(), ...failure } });
    await call.settle();

    const names = Object.keys(call.end().data);
    for (const name of ['cause', 'retryAfterS', 'warning', 'block', 'connectedIdentity'])
      expect(names).not.toContain(name);
  });
});

describe('an answered call', () => {
  test('names who was reached, and why the callee hung up', async () => {
    const call = scriptCall({ request: { machineDetection: 'disabled' } });
    await call.sent();
    call.leg().observe({ kind: 'stated', connectedIdentity: '+12025550111', cause: { q850: 1 } });
    await call.answer();
    await call.settle();
    call.leg().observe({ kind: 'stated', connectedIdentity: 'sip:jane@pbx.example' });
    const end = {
      at: call.now(),
      by: 'remote',
      reason: 'BYE',
      facts: { cause: { q850: 16 } },
    } as const;
    call.leg().observe({ kind: 'ended', end });
    await call.settle();

    const answered = call.stored.find(({ type }) => type === 'answered');
    expect(answered?.data).toMatchObject({ connectedIdentity: '+12025550111' });
    expect(answered && notificationOf(answered)).toMatchObject({
      status: 'Answered',
      connectedIdentity: '+12025550111',
    });
    expect(call.end().data).toMatchObject({
      cause: { q850: 16 },
      connectedIdentity: 'sip:jane@pbx.example',
    });
  });

  test('does not keep the cause of an 18x, which the answer disproved', async () => {
    const call = scriptCall({ request: { machineDetection: 'disabled' } });
    await call.sent();
    call.leg().observe({ kind: 'stated', cause: { q850: 1 } });
    await call.answer();
    await call.settle();
    call.leg().observe({ kind: 'ended', end: { at: call.now(), by: 'remote', reason: 'BYE' } });
    await call.settle();

    expect(call.end().data).not.toHaveProperty('cause');
  });
});

test('the process that records the end of a lost call knows who was reached', async () => {
  const call = scriptCall({ request: { machineDetection: 'disabled' } });
  await call.sent();
  call.leg().observe({ kind: 'stated', connectedIdentity: '+12025550111' });
  await call.answer();
  await call.settle();
  const { progress } = rebuild(
    {
      ...{ call: acceptedCall({ machineDetection: 'disabled' }), ownerId: 'gone' },
      ...{ events: call.stored, legs: [], answeredAt: call.now() },
    },
    [],
    { now: call.now(), loss: 'lost' },
  );
  expect(progress.connectedIdentity).toBe('+12025550111');
});

test.each([
  [{ q850: 17, text: 'User busy' }, 'Q.850 17 (User busy)'],
  [{ q850: 16, sip: 200 }, 'Q.850 16, SIP 200'],
  [{ text: 'Do Not Disturb' }, 'Do Not Disturb'],
])('a cause is written for people: %j', (cause, text) => {
  expect(causeText(cause)).toBe(text);
});
