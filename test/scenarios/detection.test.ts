// Detection over real SIP and RTP: settings, modes, and events, each once and in order on NATS, in
// the context and at the receiver.

import { describe, expect, test } from 'vitest';
import { taskCoversOnAny } from '../specification/covers.ts';
import { startLaptop } from '../support/laptop.ts';
import { forSuite } from '../support/opened.ts';
import {
  type ReceivedEvents,
  receivedEvents,
  untilDetectionStopped,
} from '../support/received-events.ts';
import { glance, type Notification } from '../support/receiver.ts';
import { ticksLateOf, undisturbed } from '../support/undisturbed.ts';

const person = 'tel:+12025550101';
const personStays = 'tel:+12025550102';
const voicemail = 'tel:+12025550110';
const voicemailNoBeep = 'tel:+12025550111';
const silence = 'tel:+12025550120';

const laptop = forSuite(startLaptop);

const ticksLate = (): Promise<number> => ticksLateOf(laptop.gateway.runtime);

/**
 * Dials, and ends the call when detection has stopped. `check` fails if the gateway did not hear
 * the callee as it should.
 */
function detect(
  target: string,
  more: Record<string, unknown>,
  check: (call: ReceivedEvents) => void,
): Promise<ReceivedEvents> {
  return undisturbed(ticksLate, async () => {
    const { callId } = await laptop.dial(target, more);
    await untilDetectionStopped(laptop, callId);
    await laptop.gateway.dialer.end(callId);
    const call = await receivedEvents(laptop, callId);
    check(call);
    return call;
  });
}

const isVoicemail = ({ onNats }: ReceivedEvents) => expect(onNats).toHaveLength(4);

/** Dials in the mode that hangs up on machines. */
function disconnecting(target: string, first: string): Promise<readonly Notification[]> {
  return undisturbed(ticksLate, async () => {
    const { callId } = await laptop.dial(target, { machineDetection: 'disconnect' });
    const all = await laptop.receiver.untilEnded(callId);
    expect(glance(all)[1]).toBe(first);
    return all;
  });
}

// The time-out is three times as long as a call takes.
describe('detection over SIP and RTP', { concurrent: true, timeout: 120_000 }, () => {
  test.each([
    [
      'a voicemail',
      voicemail,
      ['amd_machine_detected', 'amd_machine_stopped_speaking', 'amd_tone_detected', 'amd_stopped'],
    ],
    ['a person', personStays, ['amd_human_detected', 'amd_stopped']],
    ['silence', silence, ['amd_no_speech_detected', 'amd_stopped']],
  ])(
    '%s: the same events on NATS, in the context and at the receiver',
    async (_name, target, events) => {
      const call = await detect(target, {}, ({ onNats }) => expect(onNats).toEqual(events));

      expect(call.inContext).toEqual(events);
      expect(call.notified).toEqual(events);
      expect(call.end.machineDetection).toBe(events[0]);
    },
  );

  test('the event contains the evidence, and the context contains the reason', async ({ task }) => {
    taskCoversOnAny(
      task,
      'dialout.context.rule.amd',
      'dialout.context.rule.amdEvents',
      'dialout.context.rule.amdReason',
      'dialout.context.rule.amdRingDurationInMs',
      'dialout.context.rule.amdConnectDurationInMs',
    );
    const call = await detect(voicemail, {}, isVoicemail);

    expect(call.evidence('amd_machine_detected')).toMatchObject({
      reason: expect.any(String),
      confidence: expect.any(Number),
      elapsedMs: expect.any(Number),
      words: expect.any(Number),
      speechMs: expect.any(Number),
    });
    expect(call.evidence('amd_tone_detected')).toMatchObject({
      tone: { hz: expect.closeTo(1_000, -2), ms: expect.any(Number) },
    });
    expect((call.info['amdEvents'] as { event: string }[]).map(({ event }) => event)).toEqual(
      call.onNats,
    );
    expect(call.info).toMatchObject({
      amdReason: call.evidence('amd_machine_detected')?.['reason'],
      amdRingDurationInMs: call.end['ringDurationInMS'],
      amdConnectDurationInMs: call.end['connectDurationInMS'],
    });
  });

  test('noSpeechTimeoutMs', async ({ task }) => {
    taskCoversOnAny(task, 'dialout.start.body.timers.noSpeechTimeoutMs');
    await detect(silence, { timers: { noSpeechTimeoutMs: 1_000 } }, ({ evidence }) => {
      expect(evidence('amd_no_speech_detected')?.['elapsedMs']).toBe(1_000);
    });
  });

  test('decisionTimeoutMs', async ({ task }) => {
    taskCoversOnAny(
      task,
      'dialout.start.body.timers.decisionTimeoutMs',
      'notifications.amd.rule.amd_decision_timeout',
    );
    await detect(voicemailNoBeep, { timers: { decisionTimeoutMs: 1_000 } }, (call) => {
      expect(call.notified).toEqual(['amd_decision_timeout', 'amd_stopped']);
      expect(call.evidence('amd_decision_timeout')?.['elapsedMs']).toBe(1_000);
      expect(call.end.machineDetection).toBe('amd_decision_timeout');
    });
  });

  test('greetingCompletionTimeoutMs: the end of a greeting is reported after that much silence', async ({
    task,
  }) => {
    taskCoversOnAny(task, 'dialout.start.body.timers.greetingCompletionTimeoutMs');
    const timers = { greetingCompletionTimeoutMs: 1_200, toneTimeoutMs: 9_000 };
    await detect(voicemailNoBeep, { timers }, (call) => {
      expect(call.notified.slice(0, 2)).toEqual([
        'amd_machine_detected',
        'amd_machine_stopped_speaking',
      ]);
      expect(call.evidence('amd_machine_stopped_speaking')?.['pauseMs']).toBeGreaterThanOrEqual(
        1_200,
      );
    });
  });

  test('toneTimeoutMs: the search for a beep ends, counted from the answer', async ({ task }) => {
    taskCoversOnAny(task, 'dialout.start.body.timers.toneTimeoutMs');
    await detect(voicemailNoBeep, { timers: { toneTimeoutMs: 8_500 } }, (call) => {
      expect(call.notified.at(-1)).toBe('amd_stopped');
      expect(call.evidence('amd_stopped')).toMatchObject({
        reason: 'tone-timeout',
        elapsedMs: 8_500,
      });
    });
  });

  test('thresholdWordCount is a strict rule: with 1, one word makes a machine', async () => {
    await detect(personStays, { thresholdWordCount: 1 }, ({ notified }) => {
      expect(notified[0]).toBe('amd_machine_detected');
    });
  });

  test('thresholdWordCount is a strict rule: with 100, a voicemail is not a machine', async () => {
    await detect(voicemailNoBeep, { thresholdWordCount: 100 }, ({ notified }) => {
      expect(notified).not.toContain('amd_machine_detected');
    });
  });

  test('only subscribed events are notified, but all events are on NATS', async () => {
    const call = await detect(
      voicemail,
      { amdEventsSubscription: ['amd_tone_detected'] },
      isVoicemail,
    );

    expect(call.notified).toEqual(['amd_tone_detected']);
    expect(call.onNats).toHaveLength(4);
    expect(call.all.map(({ sequence }) => sequence)).toEqual([1, 2, 3]);
  });

  test('disconnect: the gateway hangs up a machine before any other event', async () => {
    const all = await disconnecting(voicemail, 'amd_machine_detected');

    expect(glance(all)).toEqual(['Answered', 'amd_machine_detected', 'amd_stopped', 'completed']);
    expect(all.at(-1)).toMatchObject({ outcome: 'machine', reasonCode: 'Bot-disconnected' });
  });

  test('disconnect: a person stays', async () => {
    expect((await disconnecting(person, 'amd_human_detected')).at(-1)).toMatchObject({
      reasonCode: 'Caller-disconnected',
      machineDetection: 'amd_human_detected',
    });
  });
});
