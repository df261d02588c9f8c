import { describe, expect, test } from 'vitest';
import {
  endAfterAnswer,
  endBeforeAnswer,
  endOfBotFailure,
  endOfExpiry,
  endOfFailure,
  endOfMachine,
  endOfRefusal,
  endOfRemoteBye,
  endOfRingTimeout,
  endOfUnknown,
  endOfVoicemail,
  faultOf,
} from '../../../src/calls/life/call-outcome.ts';

const at = new Date('2026-01-01T00:00:00.000Z');

describe('the end of a call with a SIP status of the far end', () => {
  test.each([
    [302, 'Moved Temporarily', 'rejected', 'Service Unavailable'],
    [400, 'Bad Request', 'rejected', 'Service Unavailable'],
    [401, 'Unauthorized', 'rejected', 'Service Unavailable'],
    [403, 'Forbidden', 'rejected', 'Service Unavailable'],
    [404, 'Not Found', 'invalid-number', 'Service Unavailable'],
    [407, 'Proxy Authentication Required', 'rejected', 'Service Unavailable'],
    [408, 'Request Timeout', 'no-answer', 'Temporarily Unavailable'],
    [410, 'Gone', 'invalid-number', 'Service Unavailable'],
    [480, 'Temporarily Unavailable', 'unavailable', 'Temporarily Unavailable'],
    [484, 'Address Incomplete', 'invalid-number', 'Service Unavailable'],
    [486, 'Busy Here', 'busy', 'Busy here'],
    [487, 'Request Terminated', 'no-answer', 'Temporarily Unavailable'],
    [488, 'Not Acceptable Here', 'rejected', 'Service Unavailable'],
    [500, 'Server Internal Error', 'carrier-failure', 'Service Unavailable'],
    [503, 'Service Unavailable', 'carrier-failure', 'Service Unavailable'],
    [600, 'Busy Everywhere', 'busy', 'Busy here'],
    [603, 'Decline', 'declined', 'Temporarily Unavailable'],
    [604, 'Does Not Exist Anywhere', 'invalid-number', 'Service Unavailable'],
    [606, 'Not Acceptable', 'rejected', 'Service Unavailable'],
    [607, 'Unwanted', 'declined', 'Temporarily Unavailable'],
    [608, 'Rejected', 'blocked', 'Service Unavailable'],
    [699, 'Unheard Of', 'rejected', 'Service Unavailable'],
  ])('%i %s is %s, %s', (sipStatus, reason, outcome, reasonCode) => {
    expect(endOfFailure({ at, sipStatus, reason, kind: 'response' })).toEqual({
      at,
      sipStatus,
      outcome,
      reasonCode,
      reason: `${sipStatus} ${reason}`,
    });
  });
});

test('a 603 is blocked if the carrier says so', () => {
  const facts = { block: { by: 'a.example', raw: 'SIP;cause=603' }, cause: { sip: 603 } };
  const failure = { at, sipStatus: 603, reason: 'Network Blocked', kind: 'response' } as const;
  const end = endOfFailure({ ...failure, facts });
  expect(end).toEqual({
    at,
    outcome: 'blocked',
    reasonCode: 'Service Unavailable',
    reason: '603 Network Blocked',
    sipStatus: 603,
    facts,
  });
  expect(faultOf(end)).toBe('carrier');
});

test('the BYE of the far end says why it hung up', () => {
  const facts = { cause: { q850: 31, text: 'Normal, unspecified' } };
  expect(endOfRemoteBye({ at, facts })).toMatchObject({ outcome: 'completed', facts });
});

describe('the end of a call that fails without a response', () => {
  test.each([
    [
      'the stack makes up a 408: the carrier was silent, not the person',
      { sipStatus: 408, reason: 'Request Timeout', kind: 'stack' },
      'carrier-failure',
      '408 Request Timeout',
    ],
    [
      'the stack makes up a 503: no server listens there',
      { sipStatus: 503, reason: 'Service Unavailable', kind: 'stack' },
      'carrier-failure',
      '503 Service Unavailable',
    ],
    [
      'the stack makes up a 503: the server has the wrong certificate',
      { sipStatus: 503, reason: 'TLS: certificate has expired', kind: 'stack' },
      'carrier-failure',
      'TLS: certificate has expired',
    ],
    [
      'a 200 is not usable',
      { sipStatus: 200, reason: 'OK without usable SDP', kind: 'unusable' },
      'carrier-failure',
      '200 OK without usable SDP',
    ],
    [
      'the SIP engine is unreachable',
      { reason: 'drachtio connection lost', kind: 'transport' },
      'gateway-failure',
      'drachtio connection lost',
    ],
  ] as const)('%s', (_name, failure, outcome, reason) => {
    expect(endOfFailure({ at, ...failure })).toMatchObject({
      outcome,
      reason,
      reasonCode: 'Service Unavailable',
    });
  });
});

describe('the end of a call for other reasons', () => {
  const gateway = { by: 'gateway', reason: 'RTP was lost' } as const;
  test.each([
    [
      'ring time-out',
      endOfRingTimeout(at),
      'no-answer',
      'Temporarily Unavailable',
      'Ring time-out',
    ],
    [
      'cancelled by the application',
      endBeforeAnswer({ by: 'application' }, at),
      'cancelled',
      'Temporarily Unavailable',
      'Cancelled by the application',
    ],
    [
      'given up by the gateway',
      endBeforeAnswer(gateway, at),
      'gateway-failure',
      'Service Unavailable',
      'RTP was lost',
    ],
    [
      'waited too long',
      endOfExpiry(at),
      'expired',
      'Service Unavailable',
      'Waited too long in the queue',
    ],
    [
      'found after a crash',
      endOfUnknown('restarted', at),
      'unknown',
      'Service Unavailable',
      'Gateway restarted while the call was being placed',
    ],
    ['the person hung up', endOfRemoteBye({ at }), 'completed', 'Caller-disconnected', '200 OK'],
    [
      'the application hung up',
      endAfterAnswer({ by: 'application' }, at),
      'completed',
      'Bot-disconnected',
      '200 OK',
    ],
    [
      'the gateway hung up',
      endAfterAnswer(gateway, at),
      'gateway-failure',
      'Gateway-disconnected',
      'RTP was lost',
    ],
    [
      'the bot is unreachable',
      endOfBotFailure(at),
      'bot-failure',
      'Bot-disconnected',
      'Bot unreachable',
    ],
    ['a message was left', endOfVoicemail(at), 'voicemail-left', 'Bot-disconnected', '200 OK'],
    ['disconnect mode met a machine', endOfMachine(at), 'machine', 'Bot-disconnected', '200 OK'],
  ])('%s', (_name, end, outcome, reasonCode, reason) => {
    expect(end).toEqual({ at, outcome, reasonCode, reason });
  });
});

describe('the side at fault', () => {
  test.each([
    ['completed', undefined],
    ['machine', undefined],
    ['busy', 'callee'],
    ['declined', 'callee'],
    ['blocked', 'carrier'],
    ['no-answer', 'callee'],
    ['unavailable', 'callee'],
    ['invalid-number', 'caller'],
    ['rejected', 'carrier'],
    ['carrier-failure', 'carrier'],
    ['gateway-failure', 'gateway'],
    ['bot-failure', 'caller'],
    ['cancelled', 'caller'],
    ['expired', 'gateway'],
    ['unknown', 'gateway'],
  ] as const)('for the outcome %s: %s', (outcome, fault) => {
    expect(faultOf({ outcome })).toBe(fault);
  });

  test.each([
    [302, 'Moved Temporarily', 'carrier'],
    [401, 'Unauthorized', 'gateway'],
    [403, 'Forbidden', 'carrier'],
    [404, 'Not Found', 'caller'],
    [407, 'Proxy Authentication Required', 'gateway'],
    [408, 'Request Timeout', 'callee'],
    [486, 'Busy Here', 'callee'],
    [503, 'Service Unavailable', 'carrier'],
    [603, 'Decline', 'callee'],
    [606, 'Not Acceptable', 'callee'],
    [607, 'Unwanted', 'callee'],
    [608, 'Rejected', 'carrier'],
  ])('for %i %s: %s', (sipStatus, reason, fault) => {
    expect(faultOf(endOfFailure({ at, sipStatus, reason, kind: 'response' }))).toBe(fault);
  });

  test('is the carrier if it is silent, whatever status the stack makes up', () => {
    for (const sipStatus of [408, 503]) {
      const end = endOfFailure({ at, sipStatus, reason: 'made up', kind: 'stack' });
      expect(faultOf(end)).toBe('carrier');
    }
  });
});

test('the end of a call that a calling rule refused names the rule', () => {
  const refusal = { rule: 'hours', notBefore: new Date('2026-01-02T08:00:00.000Z') } as const;

  const end = endOfRefusal(refusal, at);

  expect(end).toEqual({
    ...{ at, outcome: 'not-permitted', reasonCode: 'Service Unavailable' },
    ...{ reason: 'Outside the calling hours', refusal },
  });
  expect(faultOf(end)).toBe('caller');
  const late = { at, kind: 'outside-hours', reason: 'late' } as const;
  expect(endOfFailure(late)).toEqual(endOfRefusal({ rule: 'hours' }, at));
});
