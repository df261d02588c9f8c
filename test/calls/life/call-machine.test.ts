import { describe, expect, test } from 'vitest';
import type { DialoutRequest } from '../../../src/calls/call-types.ts';
import type { CallEvent } from '../../../src/calls/contract/call-event.ts';
import { queuedEvent } from '../../../src/calls/life/call-events.ts';
import { provesOnAny } from '../../companion/proves.ts';
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
  test('states dialing once the INVITE has left, and stores how to cancel it', async () => {
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

  test('stores with the first ring how its early dialog can be ended, and nothing with the next ones', async () => {
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

  test('states dialing for each gateway, and at the end what came of those that failed', async () => {
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
    // From the first INVITE: that is when dialing began.
    expect(call.stored[2]?.data).toMatchObject({ connectDurationInMS: 1_400 });
    expect(call.end().data.failedAttempts).toEqual([attempt]);
    expect(call.log.filter((entry) => entry === 'store INVITE')).toHaveLength(2);
  });

  test('the ring time-out counts from the first INVITE, whatever held that up', async () => {
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

  test('a call whose INVITE is held up for as long as it may wait ends as one that waited too long', async () => {
    const call = scriptCall({ request: { ringTimeoutMs: 5_000, queueTimeoutMs: 20_000 } });
    await call.settle();
    call.advance(19_999);
    expect(call.state()).toBe('preparing');
    call.advance(1);
    await call.settle();

    expect(call.log).toContain('cancel');
    expect(call.end().data).toMatchObject({ reason: 'Waited too long in the queue' });
  });

  test('the ring time-out bounds all attempts together', async () => {
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

  test('states ringing once, however many 18x arrive', async () => {
    const call = scriptCall();
    await call.sent();
    call.ring(180);
    call.ring(180);
    call.ring(183, 'early');

    expect(call.state()).toEqual({ calling: 'ringing' });
    expect(call.types()).toEqual(['dialing', 'ringing']);
    expect(call.log).toContain('media early');
  });

  test('is not ringing at a 100', async () => {
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

  test('cancelled before the media port is there, places nothing', async () => {
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
  test('gives up after the ring time-out, cancels, and reports no answer', async () => {
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

  test('the ring time-out counts from the INVITE, not from the first 18x', async () => {
    const call = scriptCall({ request: { ringTimeoutMs: 20_000 } });
    await call.sent();
    call.advance(15_000);
    call.ring();
    call.advance(5_000);

    expect(call.log).toContain('cancel');
  });

  test('busy: states failed with the status line', async () => {
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

  test('cancelled by the application while it rings', async () => {
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

  test('a late final response after the time-out changes nothing', async () => {
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

  test('the media worker dies while it rings: cancelled, and said so', async () => {
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
  test('stores what a BYE needs before the 200 is ACKed, then states answered', async () => {
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
        context: { metadata: { campaign: 'spring' } },
      },
    });
  });

  test('its answer is one step: the event, its time, and what a BYE needs', async () => {
    const call = await answered();

    expect(call.steps.at(-1)).toMatchObject({
      events: [{ type: 'answered', eventSequence: 4 }],
      answeredAt: new Date('2026-01-01T00:00:03.500Z'),
      leg: { ...storedLeg, dialogId: 'dialog-1' },
    });
  });

  test.each([
    ['fails', () => Promise.reject(new Error('SQL is unreachable'))],
    ['is refused: the call is not ours any more', () => Promise.resolve('not owned')],
  ] satisfies readonly (readonly [string, ScriptOptions['storeAnswer']])[])(
    'a store that %s hangs up, and the call has failed',
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

  test('that is stored late does not pass for the end, which is still to be stored', async () => {
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

  test('a store that stalls hangs up after its bound', async () => {
    const call = await answered({ storeAnswer: () => new Promise(() => {}) });
    call.advance(3_999);
    expect(call.log).not.toContain('bye');
    call.advance(1);
    await call.settle();

    expect(call.log).toContain('bye');
    expect(call.end().type).toBe('failed');
  });

  test('an answer that is given up leaves it to SQL how the call ended, with the numbers of both ways', async () => {
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

  test('an answer that SQL holds though that was not told ends as one that was answered', async () => {
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

  test('an answer that is given up without detection owes no amd_stopped', async () => {
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

  test('a side hung up before the answer was given up: it is still SQL that says whether it was answered', async () => {
    const call = await answered({ storeAnswer: () => new Promise(() => {}) });
    call.remoteBye();
    call.advance(4_000);
    await call.settle();

    const [ending] = call.endings();
    expect([ending?.event.type, ending?.ifAnswered?.at(-1)?.type]).toEqual(['failed', 'completed']);
  });

  test('an end without doubt says one thing', async () => {
    const call = await answered();
    call.remoteBye();
    call.amd('amd_stopped');
    await call.settle();

    expect(call.endings()).toHaveLength(1);
    expect(call.endings()[0]).not.toHaveProperty('ifAnswered');
  });

  test('a 200 without usable SDP is hung up and the call has failed', async () => {
    const call = await answered({ unusableAnswer: true });
    await call.settle();

    expect(call.log).toContain('bye');
    expect(call.end()).toMatchObject({
      type: 'failed',
      data: { outcome: 'carrier-failure', reasonCode: 'Service Unavailable' },
    });
  });

  test('hung up by the person: completed with its times', async () => {
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

  test('hung up by the application', async () => {
    const call = await answered({ request: { machineDetection: 'disabled' } });
    call.actor.send({ type: 'command.end', command: { by: 'application' } });
    await call.settle();

    expect(call.log.filter((entry) => entry === 'bye')).toHaveLength(1);
    expect(call.end().data).toMatchObject({ reason: '200 OK', reasonCode: 'Bot-disconnected' });
  });

  test('a BYE that comes while the answer is stored ends it after `answered` was stated', async () => {
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

  test('who hung up first stands, whatever comes while the answer is stored', async () => {
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

  test('hung up by the application while the answer is stored: answered, then completed', async () => {
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

  test('a broken engine connection is the gateway’s fault', async () => {
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

  test('ends at the longest duration', async () => {
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
    ['its own, where it is the shorter one', 10_000, 60_000, 10_000],
    ['that of the gateway, where its own is longer', 120_000, 60_000, 60_000],
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

  test('counts its longest duration from the answer, and not from when that was stored', async () => {
    let told = (): void => undefined;
    const call = await answered({
      request: { machineDetection: 'disabled', maxDurationMs: 10_000 },
      storeAnswer: () => new Promise((resolve) => (told = () => resolve('stored'))),
    });
    call.advance(3_000);
    told();
    await call.settle();
    call.advance(7_000);
    await call.settle();

    expect(call.end().data).toMatchObject({ callDurationMs: 10_000, outcome: 'completed' });
  });

  test('without RTP it ends, with amd_error and amd_stopped before the end', async () => {
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

  test('without RTP after a verdict the verdict stands: no amd_error follows it', async () => {
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

  test('states digits with where they came from', async () => {
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
  test('is listened to up to a bound', async () => {
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
  test('states each event in order, with the context that grows', async () => {
    const call = await answered();
    call.amd('amd_human_detected', { reason: 'short-greeting', confidence: 0.9 });
    call.amd('amd_stopped', { reason: 'human' });

    const [human, stopped] = call.stored.slice(3);
    expect(human).toMatchObject({
      type: 'amd',
      data: {
        notificationSequence: 2,
        amd: { event: 'amd_human_detected', reason: 'short-greeting' },
        context: { session: { UserSession: { amd: ['amd_human_detected'] } } },
      },
    });
    expect(stopped).toMatchObject({
      data: {
        notificationSequence: 3,
        context: { session: { UserSession: { amd: ['amd_human_detected', 'amd_stopped'] } } },
      },
    });
  });

  test('is not started when it is disabled', async () => {
    const call = await answered({ request: { machineDetection: 'disabled' } });

    expect(call.log).not.toContain('startDetection');
  });

  test('events between the 200 and its ACK are stated after answered', async () => {
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

  test('a call that ends first waits for amd_stopped, which comes before the end', async () => {
    const call = await answered();
    call.remoteBye();
    expect(call.state()).toBe('closing');
    expect(call.log.at(-1)).toBe('stopDetection call-ended');
    call.amd('amd_stopped', { reason: 'call-ended' });
    await call.settle();

    expect(call.types()).toEqual(['dialing', 'ringing', 'answered', 'amd', 'completed']);
    expect(call.end().data).not.toHaveProperty('machineDetection');
  });

  test('a worker that does not say amd_stopped in time has it said for it', async () => {
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
    'in disconnect mode %s hangs up and marks the interaction',
    async (event) => {
      provesOnAny('dialout.interaction.rule.machineDetected-tone');
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

  test('in disconnect mode a failed detection hangs up as the gateway', async () => {
    provesOnAny(
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

  test('in disconnect mode a detection that fails after its verdict leaves the person in the call', async () => {
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

  test('in detect mode a machine keeps the call', async () => {
    const call = await answered();
    call.amd('amd_machine_detected');

    expect(call.state()).toBe('answered');
    expect(call.log).not.toContain('bye');
  });

  test('the verdict on completed is the first one', async () => {
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

  test('unless a beep took it back', async () => {
    const call = await answered();
    call.amd('amd_human_detected');
    call.amd('amd_tone_detected', { corrects: 'amd_human_detected' });
    call.amd('amd_stopped');
    call.remoteBye();
    await call.settle();

    expect(call.end().data.machineDetection).toBe('amd_tone_detected');
  });

  test('an empty subscription notifies none of them and leaves no gap in the sequence', async () => {
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

  test('a list of names notifies those', async () => {
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

  test('are numbered among the notifications, and the end is the last', async () => {
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

  test('begin with the first, which is stated when the call is accepted', async () => {
    const call = await answered({ request: { notifyEvents: ['queued', 'dialing'] } });

    const accepted = acceptedCall({ notifyEvents: ['queued'] });
    expect(queuedEvent(accepted).data).toEqual({ trunk: 'sandbox', notificationSequence: 1 });
    expect(numbersOf(call)).toEqual(['dialing 2', 'ringing -', 'answered 3']);
    const { notifyUrl: _none, ...unnotified } = accepted.request;
    expect(queuedEvent({ ...accepted, request: unnotified }).data).toEqual({ trunk: 'sandbox' });
  });

  test('take back no number where the answer is doubted', async () => {
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
    ['none are selected', {}],
    ['others are selected', { notifyEvents: ['stream-started'] }],
  ])('have not one member more where %s', async (_what, request) => {
    const call = await answered({ request });
    press(call);

    expect(call.stored.map(({ data }) => Object.keys(data))).toEqual([
      ['gateway', 'attempt', 'trunk'],
      ['sipStatus', 'sipReason', 'earlyMedia'],
      expect.any(Array),
      ['digit', 'source', 'durationMs'],
    ]);
  });

  test('are bounded, and those with a status of their own are not', async () => {
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

  test('comes though an event before it was refused', async () => {
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

  test('that SQL refuses ends the machine all the same', async () => {
    const call = scriptCall({ storeEnd: () => Promise.reject(new Error('full')) });
    await call.sent();
    call.fail({ sipStatus: 486 });
    await call.settle();

    expect(call.types()).toEqual(['dialing']);
    expect(call.actor.getSnapshot().status).toBe('done');
    expect(call.log).toContain('media closed');
  });

  test('comes even where a port throws that never should', async () => {
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
    expect(call.actor.getSnapshot().status).toBe('done');
  });

  test('has one id whichever process states it', async () => {
    const call = scriptCall();
    await call.sent();
    call.fail({ sipStatus: 486 });
    await call.settle();

    expect(call.end().id).toBe('evt-11111111-1111-4111-8111-111111111111-end');
  });

  test('gives up waiting for SQL after its bound, and leaves the call to the sweep', async () => {
    const call = scriptCall({ storeEnd: () => new Promise(() => {}) });
    await call.sent();
    call.fail({ sipStatus: 486 });
    call.advance(60_000);

    expect(call.actor.getSnapshot().status).toBe('done');
    expect(call.types()).toEqual(['dialing']);
  });

  test('event sequences are whole from the start to the end', async () => {
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
