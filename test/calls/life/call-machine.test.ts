import { describe, expect, test } from 'vitest';
import type { DialoutRequest } from '../../../src/calls/call-types.ts';
import type { CallEvent } from '../../../src/calls/contract/call-event.ts';
import { queuedEvent } from '../../../src/calls/life/call-events.ts';
import { coversOnAny } from '../../specification/covers.ts';
import {
  acceptedCall,
  type ScriptOptions,
  scriptCall,
  storedLeg,
} from '../../support/scripted-call.ts';

async function answered(options: ScriptOptions = {}) {
  const call = scriptCall(options);
  await call.sent();
  call.advance(1_000);
  call.ring();
  call.advance(2_500);
  await call.answer();
  return call;
}

describe('a call that is placed', () => {
  test('emits dialing when the INVITE has left, and stores how to cancel it', async () => {
    const call = scriptCall();
    await call.sent();

    expect(call.state()).toEqual({ calling: 'dialing' });
    expect(call.types()).toEqual(['dialing']);
    expect(call.log).toContain('store INVITE');
    expect(call.placed()).toMatchObject({
      caller: '15550199',
      trunk: 'sandbox',
      offerSdp: 'offer',
    });
  });

  test('stores with the first 18x how its early dialog can be ended, and nothing with later ones', async () => {
    const call = scriptCall();
    await call.sent();
    const early = { ...storedLeg, remoteTag: 'far', remoteTarget: 'sip:phone@127.0.0.1' };
    call.ring(180, undefined, early);
    call.ring(183, 'sdp', { ...early, remoteTag: 'another' });

    const rings = call.steps.filter(({ ringingAt }) => ringingAt !== undefined);
    expect(rings.map(({ leg }) => leg)).toEqual([early]);
    expect(call.log.filter((entry) => entry.startsWith('store'))).toEqual([
      'store INVITE',
      'store ringing',
    ]);
  });

  test('emits dialing for each gateway, and lists the failed attempts at the end', async () => {
    const call = scriptCall();
    await call.sent();
    call.advance(400);
    const attempt = {
      gateway: 'gw',
      sipStatus: 503,
      reason: 'Service Unavailable',
      durationMs: 400,
    };
    call.leg().observe({ kind: 'attemptFailed', attempt });
    await call.sent();
    call.advance(1_000);
    await call.answer();
    call.remoteBye();
    call.advance(1_000);
    await call.settle();

    expect(call.types()).toEqual(['dialing', 'dialing', 'answered', 'amd', 'completed']);
    expect(call.stored.map(({ eventSequence }) => eventSequence)).toEqual([2, 3, 4, 5, 6]);
    expect(call.stored[0]?.data).toEqual({ trunk: 'sandbox', gateway: 'gw', attempt: 1 });
    expect(call.stored[1]?.data).toEqual({
      trunk: 'sandbox',
      gateway: 'gw',
      attempt: 2,
      failedAttempts: [attempt],
    });
    // Counted from the first INVITE, which is when dialing began.
    expect(call.stored[2]?.data).toMatchObject({ connectDurationInMS: 1_400 });
    expect(call.end().data.failedAttempts).toEqual([attempt]);
    expect(call.log.filter((entry) => entry === 'store INVITE')).toHaveLength(2);
  });

  test('counts the ring time-out from the first INVITE, whatever delayed it', async () => {
    const call = scriptCall({ request: { ringTimeoutMs: 5_000 } });
    call.advance(3_000);
    await call.sent();
    call.advance(4_999);
    call.ring();
    expect(call.state()).toEqual({ calling: 'ringing' });

    call.advance(1);
    await call.settle();
    expect(call.end().data).toMatchObject({ outcome: 'no-answer', reason: 'Ring time-out' });
  });

  test('expires if its INVITE is delayed for its whole queue time-out', async () => {
    const call = scriptCall({ request: { ringTimeoutMs: 5_000, queueTimeoutMs: 20_000 } });
    await call.settle();
    call.advance(19_999);
    expect(call.state()).toBe('preparing');
    call.advance(1);
    await call.settle();

    expect(call.log).toContain('cancel');
    expect(call.end().data).toMatchObject({ reason: 'Waited too long in the queue' });
  });

  test('bounds all attempts together by the ring time-out', async () => {
    const call = scriptCall({ request: { ringTimeoutMs: 5_000 } });
    await call.sent();
    call.advance(4_000);
    const attempt = { gateway: 'gw', reason: 'Time-out', durationMs: 4_000 };
    call.leg().observe({ kind: 'attemptFailed', attempt });
    await call.sent();
    call.advance(1_000);
    await call.settle();

    expect(call.log).toContain('cancel');
    expect(call.end().data).toMatchObject({ outcome: 'no-answer', reason: 'Ring time-out' });
  });

  test('emits ringing once, however many 18x arrive', async () => {
    const call = scriptCall();
    await call.sent();
    call.ring(180);
    call.ring(180);
    call.ring(183, 'early');

    expect(call.state()).toEqual({ calling: 'ringing' });
    expect(call.types()).toEqual(['dialing', 'ringing']);
    expect(call.log).toContain('media early');
  });

  test('does not ring at a 100', async () => {
    const call = scriptCall();
    await call.sent();
    call.ring(100);

    expect(call.state()).toEqual({ calling: 'dialing' });
  });

  test('fails without a media port, and no INVITE leaves', async () => {
    const call = scriptCall({ noMedia: true });
    await call.settle();

    expect(call.end()).toMatchObject({
      type: 'failed',
      data: {
        reason: 'No media port is free',
        reasonCode: 'Service Unavailable',
        outcome: 'gateway-failure',
      },
    });
    expect(() => call.placed()).toThrow();
  });

  test('places nothing if it is cancelled before the media port is there', async () => {
    const call = scriptCall();
    call.actor.send({ type: 'command.end', command: { by: 'application' } });
    await call.settle();

    expect(call.end().data).toMatchObject({
      outcome: 'cancelled',
      reasonCode: 'Temporarily Unavailable',
    });
    expect(() => call.placed()).toThrow();
    expect(call.log).toContain('media closed');
  });
});

describe('a call that is not answered', () => {
  test('gives up after the ring time-out, sends CANCEL, and ends as no-answer', async () => {
    const call = scriptCall({ request: { ringTimeoutMs: 20_000 } });
    await call.sent();
    call.ring();
    call.advance(19_999);
    expect(call.state()).toEqual({ calling: 'ringing' });
    call.advance(1);
    await call.settle();

    expect(call.log).toContain('cancel');
    expect(call.end()).toMatchObject({
      type: 'failed',
      data: {
        outcome: 'no-answer',
        reason: 'Ring time-out',
        reasonCode: 'Temporarily Unavailable',
        ringDurationInMS: 20_000,
        connectDurationInMS: 0,
      },
    });
    expect(call.end().data).not.toHaveProperty('callConnectTime');
    expect(call.actor.getSnapshot().status).toBe('done');
  });

  test('counts the ring time-out from the INVITE, not from the first 18x', async () => {
    const call = scriptCall({ request: { ringTimeoutMs: 20_000 } });
    await call.sent();
    call.advance(15_000);
    call.ring();
    call.advance(5_000);

    expect(call.log).toContain('cancel');
  });

  test('emits failed with the status line if the far end is busy', async () => {
    const call = scriptCall();
    await call.sent();
    call.fail({ sipStatus: 486, reason: 'Busy Here' });
    await call.settle();

    expect(call.end()).toMatchObject({
      type: 'failed',
      data: {
        reason: '486 Busy Here',
        reasonCode: 'Busy here',
        outcome: 'busy',
        sipStatus: 486,
        notificationSequence: 1,
      },
    });
    expect(call.types()).toEqual(['dialing', 'failed']);
    expect(call.log).toContain('store end');
    expect(call.log).toContain('media closed');
    expect(call.log).not.toContain('cancel');
  });

  test('ends as cancelled if the application cancels it while it rings', async () => {
    const call = scriptCall();
    await call.sent();
    call.ring();
    call.actor.send({ type: 'command.end', command: { by: 'application' } });
    await call.settle();

    expect(call.log.filter((entry) => entry === 'cancel')).toHaveLength(1);
    expect(call.end().data).toMatchObject({
      outcome: 'cancelled',
      reason: 'Cancelled by the application',
    });
  });

  test('ignores a late final response after the time-out', async () => {
    const call = scriptCall({ request: { ringTimeoutMs: 1_000 } });
    await call.sent();
    const leg = call.leg();
    call.advance(1_000);
    const failure = { at: call.now(), kind: 'cancelled', reason: 'cancelled' } as const;
    leg.observe({ kind: 'failed', failure });
    await call.settle();

    expect(call.endings()).toHaveLength(1);
    expect(call.end().data.outcome).toBe('no-answer');
  });

  test('is cancelled with the reason if the media worker dies while it rings', async () => {
    const call = scriptCall();
    await call.sent();
    call.media().observe({ kind: 'failed', reason: 'media worker exited' });
    await call.settle();

    expect(call.log).toContain('cancel');
    expect(call.end().data).toMatchObject({
      outcome: 'gateway-failure',
      reason: 'media worker exited',
    });
  });
});

describe('a call that is answered', () => {
  test('stores what a BYE needs before the 200 is ACKed, then emits answered', async () => {
    let stored = () => {};
    const call = await answered({
      storeAnswer: () =>
        new Promise((resolve) => {
          stored = () => resolve('stored');
        }),
    });

    expect(call.state()).toBe('answering');
    expect(call.log).not.toContain('ack');
    expect(call.types()).toEqual(['dialing', 'ringing']);
    stored();
    await call.settle();

    expect(call.state()).toBe('answered');
    expect(call.log.indexOf('store answer')).toBeLessThan(call.log.indexOf('ack'));
    expect(call.stored.at(-1)).toMatchObject({
      type: 'answered',
      eventSequence: 4,
      data: {
        callConnectTime: '2026-01-01T00:00:03.500Z',
        ringDurationInMS: 2_500,
        connectDurationInMS: 3_500,
        notificationSequence: 1,
      },
    });
  });

  test('stores its answer in one step: the event, its time, and what a BYE needs', async () => {
    const call = await answered();

    expect(call.steps.at(-1)).toMatchObject({
      events: [{ type: 'answered', eventSequence: 4 }],
      answeredAt: new Date('2026-01-01T00:00:03.500Z'),
      leg: { ...storedLeg, dialogId: 'dialog-1' },
    });
  });

  test.each([
    ['fails', () => Promise.reject(new Error('SQL is unreachable'))],
    ['is refused, because another process owns the call', () => Promise.resolve('not owned')],
  ] satisfies readonly (readonly [string, ScriptOptions['storeAnswer']])[])(
    'hangs up and fails if the store of the answer %s',
    async (_how, storeAnswer) => {
      const call = await answered({ storeAnswer });
      await call.settle();

      expect(call.log).toContain('bye');
      expect(call.log).not.toContain('ack');
      expect(call.end()).toMatchObject({
        type: 'failed',
        eventSequence: 4,
        data: { outcome: 'gateway-failure', notificationSequence: 1 },
      });
      expect(call.types()).toEqual(['dialing', 'ringing', 'failed']);
    },
  );

  test('does not take the late store of the answer for that of the end', async () => {
    let answerIsStored: (result: 'stored') => void = () => undefined;
    const call = await answered({
      storeAnswer: () =>
        new Promise((resolve) => {
          answerIsStored = resolve;
        }),
      storeEnd: () => new Promise(() => {}),
    });
    call.advance(4_000);

    answerIsStored('stored');
    await call.settle();

    expect(call.state()).toBe('recording');
  });

  test('hangs up after the bound if the store of the answer stalls', async () => {
    const call = await answered({ storeAnswer: () => new Promise(() => {}) });
    call.advance(3_999);
    expect(call.log).not.toContain('bye');
    call.advance(1);
    await call.settle();

    expect(call.log).toContain('bye');
    expect(call.end().type).toBe('failed');
  });

  test('leaves it to SQL how the call ended if the answer is given up, with the sequence numbers of both variants', async () => {
    const call = await answered({ storeAnswer: () => new Promise(() => {}) });
    call.advance(4_000);
    await call.settle();

    const [ending] = call.endings();
    expect(ending?.event).toMatchObject({
      type: 'failed',
      eventSequence: 4,
      data: {
        outcome: 'gateway-failure',
        reason: 'The answer could not be recorded',
        notificationSequence: 1,
      },
    });
    expect(ending?.event.data).not.toHaveProperty('callConnectTime');
    expect(ending?.ifAnswered).toMatchObject([
      { type: 'answered', eventSequence: 4, data: { notificationSequence: 1 } },
      {
        type: 'amd',
        eventSequence: 5,
        data: {
          amd: { event: 'amd_stopped', reason: 'call-ended', elapsedMs: 4_000 },
          notificationSequence: 2,
        },
      },
      {
        type: 'completed',
        eventSequence: 6,
        time: '2026-01-01T00:00:07.500Z',
        data: {
          callConnectTime: '2026-01-01T00:00:03.500Z',
          callDurationMs: 4_000,
          reason: 'The answer could not be recorded',
          reasonCode: 'Gateway-disconnected',
          notificationSequence: 3,
        },
      },
    ]);
    expect(call.types()).toEqual(['dialing', 'ringing', 'failed']);
  });

  test('ends as answered if SQL holds the answer although its reply was lost', async () => {
    const call = await answered({
      storeAnswer: (commit) => {
        commit();
        return Promise.reject(new Error('SQL went away with the answer'));
      },
    });
    await call.settle();

    expect(call.log).not.toContain('ack');
    expect(call.types()).toEqual(['dialing', 'ringing', 'answered', 'amd', 'completed']);
    expect(call.stored.map(({ eventSequence }) => eventSequence)).toEqual([2, 3, 4, 5, 6]);
  });

  test('owes no amd_stopped if the answer is given up and detection is disabled', async () => {
    const call = await answered({
      request: { machineDetection: 'disabled' },
      storeAnswer: () => Promise.reject(new Error('SQL is unreachable')),
    });
    await call.settle();

    expect(call.endings()[0]?.ifAnswered).toMatchObject([
      { type: 'answered', eventSequence: 4 },
      { type: 'completed', eventSequence: 5 },
    ]);
  });

  test('leaves it to SQL whether it was answered, even if a side hung up before the answer was given up', async () => {
    const call = await answered({ storeAnswer: () => new Promise(() => {}) });
    call.remoteBye();
    call.advance(4_000);
    await call.settle();

    const [ending] = call.endings();
    expect([ending?.event.type, ending?.ifAnswered?.at(-1)?.type]).toEqual(['failed', 'completed']);
  });

  test('has only one variant of the end if the answer is not doubted', async () => {
    const call = await answered();
    call.remoteBye();
    call.amd('amd_stopped');
    await call.settle();

    expect(call.endings()).toHaveLength(1);
    expect(call.endings()[0]).not.toHaveProperty('ifAnswered');
  });

  test('hangs up a 200 without usable SDP, and fails', async () => {
    const call = await answered({ unusableAnswer: true });
    await call.settle();

    expect(call.log).toContain('bye');
    expect(call.end()).toMatchObject({
      type: 'failed',
      data: { outcome: 'carrier-failure', reasonCode: 'Service Unavailable' },
    });
  });

  test('is completed with its times if the person hangs up', async () => {
    const call = await answered({ request: { machineDetection: 'disabled' } });
    call.advance(7_200);
    call.remoteBye();
    await call.settle();

    expect(call.end()).toMatchObject({
      type: 'completed',
      time: '2026-01-01T00:00:10.700Z',
      data: {
        outcome: 'completed',
        reason: '200 OK',
        reasonCode: 'Caller-disconnected',
        callConnectTime: '2026-01-01T00:00:03.500Z',
        callDisconnectTime: '2026-01-01T00:00:10.700Z',
        callDurationS: 7,
        callDurationMs: 7_200,
        sessionId: 'ss-11111111-1111-4111-8111-111111111111',
        notificationSequence: 2,
      },
    });
    expect(call.log).not.toContain('bye');
  });

  test('is completed if the application hangs up', async () => {
    const call = await answered({ request: { machineDetection: 'disabled' } });
    call.actor.send({ type: 'command.end', command: { by: 'application' } });
    await call.settle();

    expect(call.log.filter((entry) => entry === 'bye')).toHaveLength(1);
    expect(call.end().data).toMatchObject({ reason: '200 OK', reasonCode: 'Bot-disconnected' });
  });

  test('ends after `answered` was emitted if a BYE comes while the answer is stored', async () => {
    let stored = () => {};
    const call = await answered({
      request: { machineDetection: 'disabled' },
      storeAnswer: () =>
        new Promise((resolve) => {
          stored = () => resolve('stored');
        }),
    });
    call.remoteBye();
    expect(call.state()).toBe('answering');
    stored();
    await call.settle();

    expect(call.types()).toEqual(['dialing', 'ringing', 'answered', 'completed']);
    expect(call.end().data.reasonCode).toBe('Caller-disconnected');
  });

  test('names the side that hung up first, whatever follows while the answer is stored', async () => {
    let stored = () => {};
    const call = await answered({
      request: { machineDetection: 'disabled' },
      storeAnswer: () =>
        new Promise((resolve) => {
          stored = () => resolve('stored');
        }),
    });
    call.remoteBye();
    call.advance(500);
    call.actor.send({ type: 'command.end', command: { by: 'application' } });
    stored();
    await call.settle();

    expect(call.end()).toMatchObject({
      time: '2026-01-01T00:00:03.500Z',
      data: { reasonCode: 'Caller-disconnected' },
    });
  });

  test('emits answered, then completed, if the application hangs up while the answer is stored', async () => {
    let stored = () => {};
    const call = await answered({
      storeAnswer: () =>
        new Promise((resolve) => {
          stored = () => resolve('stored');
        }),
    });
    call.actor.send({ type: 'command.end', command: { by: 'application' } });
    expect(call.log).toContain('bye');
    stored();
    await call.settle();
    call.advance(1_000);
    await call.settle();

    expect(call.types()).toEqual(['dialing', 'ringing', 'answered', 'amd', 'completed']);
    expect(call.end().data.reasonCode).toBe('Bot-disconnected');
  });

  test('ends by the fault of the gateway if the connection to the engine breaks', async () => {
    const call = await answered({ request: { machineDetection: 'disabled' } });
    const end = { at: call.now(), by: 'lost', reason: 'SIP engine lost' } as const;
    call.leg().observe({ kind: 'ended', end });
    await call.settle();

    expect(call.end().data).toMatchObject({
      reasonCode: 'Gateway-disconnected',
      reason: 'SIP engine lost',
      outcome: 'gateway-failure',
    });
  });

  test('ends at the maximum duration', async () => {
    const call = await answered({
      request: { machineDetection: 'disabled' },
      limits: { maxDurationMs: 60_000 },
    });
    call.advance(60_000);
    await call.settle();

    expect(call.log).toContain('bye');
    expect(call.end().data).toMatchObject({
      reasonCode: 'Gateway-disconnected',
      reason: 'Maximum call duration reached',
    });
  });

  test.each([
    ['its own maximum duration, if that is the shorter one', 10_000, 60_000, 10_000],
    ['the maximum duration of the gateway, if its own is longer', 120_000, 60_000, 60_000],
  ])('ends at %s', async (_name, maxDurationMs, ofGatewayMs, endsAfterMs) => {
    const call = await answered({
      request: { machineDetection: 'disabled', maxDurationMs },
      limits: { maxDurationMs: ofGatewayMs },
    });
    call.advance(endsAfterMs - 1);
    await call.settle();
    expect(call.log).not.toContain('bye');
    call.advance(1);
    await call.settle();

    expect(call.end().data).toMatchObject({
      reason: 'Maximum call duration reached',
      outcome: 'completed',
      callDurationMs: endsAfterMs,
    });
  });

  test('counts its maximum duration from the answer, not from the store of the answer', async () => {
    let answerStored = (): void => undefined;
    const call = await answered({
      request: { machineDetection: 'disabled', maxDurationMs: 10_000 },
      storeAnswer: () => new Promise((resolve) => (answerStored = () => resolve('stored'))),
    });
    call.advance(3_000);
    answerStored();
    await call.settle();
    call.advance(7_000);
    await call.settle();

    expect(call.end().data).toMatchObject({ callDurationMs: 10_000, outcome: 'completed' });
  });

  test('ends without RTP, with amd_error and amd_stopped before the end', async () => {
    const call = await answered();
    call.media().observe({ kind: 'inactive' });
    await call.settle();

    expect(
      call.stored
        .slice(3)
        .map((event) => (event.type === 'amd' ? event.data.amd.event : event.type)),
    ).toEqual(['amd_error', 'amd_stopped', 'completed']);
    expect(call.end().data).toMatchObject({
      reasonCode: 'Gateway-disconnected',
      reason: 'No RTP from the far end',
      machineDetection: 'amd_error',
    });
  });

  test('keeps the verdict if RTP is lost after it: no amd_error follows', async () => {
    const call = await answered();
    call.amd('amd_machine_detected');
    call.media().observe({ kind: 'inactive' });
    await call.settle();

    expect(
      call.stored
        .slice(3)
        .map((event) => (event.type === 'amd' ? event.data.amd.event : event.type)),
    ).toEqual(['amd_machine_detected', 'amd_stopped', 'completed']);
    expect(call.stored.map((event) => event.eventSequence)).toEqual([2, 3, 4, 5, 6, 7]);
    expect(call.end().data.reason).toBe('No RTP from the far end');
  });

  test('emits digits with their source', async () => {
    const call = await answered();
    call.media().observe({ kind: 'dtmf', digit: '5', durationMs: 120 });
    call.leg().observe({ kind: 'dtmf', digit: '#', durationMs: undefined });

    expect(call.stored.slice(-2).map((event) => event.data)).toEqual([
      { digit: '5', durationMs: 120, source: 'rtp' },
      { digit: '#', source: 'info' },
    ]);
  });
});

describe('a far end that floods the call with digits', () => {
  test('has its digits emitted up to a bound', async () => {
    const call = await answered({
      request: { machineDetection: 'disabled' },
      limits: { maxDigits: 3 },
    });
    for (let press = 0; press < 10; press += 1)
      call.leg().observe({ kind: 'dtmf', digit: '1', durationMs: 80 });
    call.remoteBye();
    await call.settle();

    expect(call.types().filter((type) => type === 'dtmf')).toHaveLength(3);
    expect(call.end().eventSequence).toBe(8);
  });
});

describe('answering machine detection', () => {
  test('emits each event in order', async () => {
    const call = await answered();
    call.amd('amd_human_detected', { reason: 'short-greeting', confidence: 0.9 });
    call.amd('amd_stopped', { reason: 'human' });

    const [human, stopped] = call.stored.slice(3);
    expect(human).toMatchObject({
      type: 'amd',
      data: {
        notificationSequence: 2,
        amd: { event: 'amd_human_detected', reason: 'short-greeting' },
      },
    });
    expect(stopped).toMatchObject({
      data: { notificationSequence: 3, amd: { event: 'amd_stopped', reason: 'human' } },
    });
  });

  test('does not start if it is disabled', async () => {
    const call = await answered({ request: { machineDetection: 'disabled' } });

    expect(call.log).not.toContain('startDetection');
  });

  test('emits events between the 200 and its ACK after answered', async () => {
    let stored = () => {};
    const call = await answered({
      storeAnswer: () =>
        new Promise((resolve) => {
          stored = () => resolve('stored');
        }),
    });
    call.amd('amd_no_speech_detected');
    stored();
    await call.settle();

    expect(call.types()).toEqual(['dialing', 'ringing', 'answered', 'amd']);
  });

  test('delays the end of the call until amd_stopped, which comes before the end', async () => {
    const call = await answered();
    call.remoteBye();
    expect(call.state()).toBe('closing');
    expect(call.log.at(-1)).toBe('stopDetection call-ended');
    call.amd('amd_stopped', { reason: 'call-ended' });
    await call.settle();

    expect(call.types()).toEqual(['dialing', 'ringing', 'answered', 'amd', 'completed']);
    expect(call.end().data).not.toHaveProperty('machineDetection');
  });

  test('has its amd_stopped emitted by the machine if the worker does not report it in time', async () => {
    const call = await answered();
    call.remoteBye();
    call.advance(1_000);
    await call.settle();
    call.amd('amd_stopped');

    expect(call.types()).toEqual(['dialing', 'ringing', 'answered', 'amd', 'completed']);
    expect(call.stored.at(-2)).toMatchObject({
      data: { amd: { event: 'amd_stopped', reason: 'call-ended', elapsedMs: 0 } },
    });
  });

  test.each(['amd_machine_detected', 'amd_tone_detected'] as const)(
    'hangs up and marks the interaction in disconnect mode at %s',
    async (event) => {
      coversOnAny('dialout.interaction.rule.machineDetected-tone');
      const call = await answered({ request: { machineDetection: 'disconnect' } });
      call.amd(event);
      expect(call.log).toContain('bye');
      call.amd('amd_stopped');
      await call.settle();

      expect(call.end().data).toMatchObject({
        outcome: 'machine',
        machineDetected: true,
        reason: '200 OK',
        reasonCode: 'Bot-disconnected',
      });
    },
  );

  test('hangs up as the gateway in disconnect mode if it fails', async () => {
    coversOnAny(
      'notifications.amd.rule.amd_error',
      'notifications.completed.rule.Gateway-disconnected',
    );
    const call = await answered({ request: { machineDetection: 'disconnect' } });
    call.amd('amd_error', { reason: 'detector-failed' });
    call.amd('amd_stopped');
    await call.settle();

    expect(call.end().data).toMatchObject({
      reasonCode: 'Gateway-disconnected',
      reason: 'Answering machine detection failed',
      machineDetection: 'amd_error',
    });
  });

  test('leaves the person in the call in disconnect mode if it fails after its verdict', async () => {
    const call = await answered({ request: { machineDetection: 'disconnect' } });
    call.amd('amd_human_detected');
    call.amd('amd_error', { reason: 'detector-failed' });
    call.amd('amd_stopped', { reason: 'detector-failed' });

    expect(call.state()).toBe('answered');
    expect(call.log).not.toContain('bye');
    expect(
      call.stored.slice(3).map((event) => (event.type === 'amd' ? event.data.amd.event : '')),
    ).toEqual(['amd_human_detected', 'amd_stopped']);
  });

  test('keeps the call up in detect mode at a machine', async () => {
    const call = await answered();
    call.amd('amd_machine_detected');

    expect(call.state()).toBe('answered');
    expect(call.log).not.toContain('bye');
  });

  test('gives completed its first verdict', async () => {
    const call = await answered();
    for (const event of [
      'amd_machine_detected',
      'amd_machine_stopped_speaking',
      'amd_tone_detected',
      'amd_stopped',
    ] as const)
      call.amd(event);
    call.remoteBye();
    await call.settle();

    expect(call.end().data.machineDetection).toBe('amd_machine_detected');
  });

  test('gives completed the corrected verdict if a beep corrected the first one', async () => {
    const call = await answered();
    call.amd('amd_human_detected');
    call.amd('amd_tone_detected', { corrects: 'amd_human_detected' });
    call.amd('amd_stopped');
    call.remoteBye();
    await call.settle();

    expect(call.end().data.machineDetection).toBe('amd_tone_detected');
  });

  test('notifies no event with an empty subscription, and leaves no gap in the sequence', async () => {
    const call = await answered({ request: { amdEventsSubscription: [] } });
    call.amd('amd_human_detected');
    call.amd('amd_stopped');
    call.remoteBye();
    await call.settle();

    expect(
      call.stored.filter((event) => event.type === 'amd').map((event) => event.data),
    ).not.toContainEqual(expect.objectContaining({ notificationSequence: expect.anything() }));
    expect(call.end().data.notificationSequence).toBe(2);
  });

  test('notifies the events that a list of names selects', async () => {
    const call = await answered({ request: { amdEventsSubscription: ['amd_stopped'] } });
    call.amd('amd_human_detected');
    call.amd('amd_stopped');

    const sequences = call.stored
      .slice(3)
      .map((event) => (event.type === 'amd' ? event.data.notificationSequence : undefined));
    expect(sequences).toEqual([undefined, 2]);
  });
});

describe('events that the request selects', () => {
  const press = (call: Awaited<ReturnType<typeof answered>>) =>
    call.leg().observe({ kind: 'dtmf', digit: '5', durationMs: 80 });
  const numbersOf = (call: Awaited<ReturnType<typeof answered>>) =>
    call.stored.map(({ type, data }) => `${type} ${data.notificationSequence ?? '-'}`);

  test('are numbered with the other notifications, and the end is the last', async () => {
    const call = await answered({ request: { notifyEvents: ['ringing', 'dtmf'] } });
    call.amd('amd_human_detected');
    press(call);
    call.amd('amd_stopped');
    call.remoteBye();
    await call.settle();

    expect(numbersOf(call)).toEqual([
      ...['dialing -', 'ringing 1', 'answered 2', 'amd 3', 'dtmf 4', 'amd 5', 'completed 6'],
    ]);
  });

  test('begin with the first event, which is emitted when the call is accepted', async () => {
    const call = await answered({ request: { notifyEvents: ['queued', 'dialing'] } });

    const accepted = acceptedCall({ notifyEvents: ['queued'] });
    expect(queuedEvent(accepted).data).toEqual({ trunk: 'sandbox', notificationSequence: 1 });
    expect(numbersOf(call)).toEqual(['dialing 2', 'ringing -', 'answered 3']);
    const { notifyUrl: _none, ...unnotified } = accepted.request;
    expect(queuedEvent({ ...accepted, request: unnotified }).data).toEqual({ trunk: 'sandbox' });
  });

  test('keep their numbers if the answer is doubted', async () => {
    const call = await answered({
      request: { notifyEvents: ['ringing'], machineDetection: 'disabled' },
      storeAnswer: () => Promise.reject(new Error('SQL is unreachable')),
    });
    await call.settle();

    expect(call.steps.at(-1)?.ending).toMatchObject({
      event: { type: 'failed', data: { notificationSequence: 2 } },
      ifAnswered: [
        { type: 'answered', data: { notificationSequence: 2 } },
        { type: 'completed', data: { notificationSequence: 3 } },
      ],
    });
  });

  test.each<readonly [string, Partial<DialoutRequest>]>([
    ['no events are selected', {}],
    ['other events are selected', { notifyEvents: ['stream-started'] }],
  ])('have no additional member if %s', async (_what, request) => {
    const call = await answered({ request });
    press(call);

    expect(call.stored.map(({ data }) => Object.keys(data))).toEqual([
      ['gateway', 'attempt', 'trunk'],
      ['sipStatus', 'sipReason', 'earlyMedia'],
      expect.any(Array),
      ['digit', 'source', 'durationMs'],
    ]);
  });

  test('are bounded, unlike events with a status of their own', async () => {
    const call = await answered({
      request: { notifyEvents: ['dtmf'] },
      limits: { maxDigits: 3_000 },
    });
    for (let presses = 0; presses < 3_000; presses += 1) press(call);
    call.remoteBye();
    call.advance(10_000);
    await call.settle();

    const notified = call.stored.flatMap(({ data }) => data.notificationSequence ?? []);
    expect(notified).toEqual(Array.from({ length: 2_502 }, (_, index) => index + 1));
    expect(call.end().data.notificationSequence).toBe(2_502);
  });
});

describe('the end', () => {
  test('is the last step, and has no other event', async () => {
    const call = scriptCall();
    await call.sent();
    call.fail({ sipStatus: 603, reason: 'Decline' });
    await call.settle();

    expect(call.steps).toMatchObject([
      { events: [{ type: 'dialing' }], leg: storedLeg },
      { events: [], ending: { event: { type: 'failed' } } },
    ]);
    expect(call.steps).toHaveLength(2);
  });

  test('is stored although SQL refused an event before it', async () => {
    const ends: (CallEvent | undefined)[] = [];
    const call = scriptCall({
      outbox: {
        append: async (_call, { ending }) => {
          if (ending === undefined) throw new Error('the database refuses it');
          ends.push(ending.event);
          return 'stored';
        },
      },
    });
    await call.sent();
    call.ring();
    call.fail({ sipStatus: 486 });
    await call.settle();

    expect(ends).toMatchObject([{ type: 'failed', eventSequence: 4 }]);
    expect(call.actor.getSnapshot().status).toBe('done');
  });

  test('ends the machine even if SQL refuses it', async () => {
    const call = scriptCall({ storeEnd: () => Promise.reject(new Error('full')) });
    await call.sent();
    call.fail({ sipStatus: 486 });
    await call.settle();

    expect(call.types()).toEqual(['dialing']);
    expect(call.actor.getSnapshot()).toMatchObject({ status: 'done', output: { end: undefined } });
    expect(call.log).toContain('media closed');
  });

  test('is stored even if a port throws, which it should never do', async () => {
    const call = scriptCall({ brokenSip: true });
    await call.settle();

    expect(call.end()).toMatchObject({
      type: 'failed',
      data: { outcome: 'gateway-failure', reason: 'Not placed: a defect' },
    });
    expect(call.log).toContain('media closed');
  });

  test('is not stored when another process ended the call', async () => {
    const call = scriptCall({ storeEnd: () => Promise.resolve('not owned') });
    await call.sent();
    call.fail({ sipStatus: 486 });
    await call.settle();

    expect(call.types()).toEqual(['dialing']);
    expect(call.actor.getSnapshot()).toMatchObject({ status: 'done', output: { end: undefined } });
  });

  test('has the same id whichever process emits it', async () => {
    const call = scriptCall();
    await call.sent();
    call.fail({ sipStatus: 486 });
    await call.settle();

    expect(call.end().id).toBe('evt-11111111-1111-4111-8111-111111111111-end');
  });

  test('stops waiting for SQL after its bound, and leaves the call to the sweep', async () => {
    const call = scriptCall({ storeEnd: () => new Promise(() => {}) });
    await call.sent();
    call.fail({ sipStatus: 486 });
    call.advance(60_000);

    expect(call.actor.getSnapshot().status).toBe('done');
    expect(call.types()).toEqual(['dialing']);
  });

  test('completes a sequence of event numbers without a gap', async () => {
    const call = await answered();
    call.amd('amd_human_detected');
    call.media().observe({ kind: 'dtmf', digit: '1', durationMs: 80 });
    call.amd('amd_stopped');
    call.remoteBye();
    await call.settle();

    expect(call.stored.map((event) => event.eventSequence)).toEqual([2, 3, 4, 5, 6, 7, 8]);
    expect(new Set(call.stored.map((event) => event.id)).size).toBe(7);
  });
});

describe('how the call sounded', () => {
  const disabled: Partial<DialoutRequest> = { machineDetection: 'disabled' };
  const quality = { lossPercent: 1, jitterMs: 2, concealedMs: 20, rFactor: 88, mos: 4.3 };

  test('is in the end, which waits for it', async () => {
    const call = await answered({ quality, request: disabled });
    call.remoteBye();
    expect(call.state()).toBe('closing');

    await call.settle();

    expect(call.end().data).toMatchObject({ quality });
  });

  test('is in the end of a call whose far end fell silent', async () => {
    const call = await answered({ quality });
    call.media().observe({ kind: 'inactive' });
    await call.settle();

    expect(call.end().data).toMatchObject({ reason: 'No RTP from the far end', quality });
  });

  test('is absent if nothing was heard', async () => {
    const call = await answered({ request: disabled });
    call.remoteBye();
    await call.settle();

    expect(call.end().data).not.toHaveProperty('quality');
  });

  test('is waited for no longer than the closing time-out', async () => {
    const limits = { closingTimeoutMs: 500 };
    const call = await answered({ quality: 'never', limits, request: disabled });
    call.remoteBye();
    call.advance(499);
    expect(call.state()).toBe('closing');

    call.advance(1);
    await call.settle();

    expect(call.end().data).not.toHaveProperty('quality');
    expect(call.types()).toContain('completed');
  });

  test('is not waited for if the media fails, before or after the end', async () => {
    const before = await answered({ quality: 'never', request: disabled });
    before.media().observe({ kind: 'failed', reason: 'Media worker ended' });
    await before.settle();
    expect(before.types()).toContain('completed');

    const after = await answered({ quality: 'never', request: disabled });
    after.remoteBye();
    after.media().observe({ kind: 'failed', reason: 'Media worker ended' });
    await after.settle();
    expect(after.types()).toContain('completed');
  });
});
