import { describe, expect, test } from 'vitest';
import type { CallEvent } from '../../src/calls/contract/call-event.ts';
import { notificationOf } from '../../src/calls/contract/event-table.ts';
import { mergeHeaders } from '../../src/notifier/signature.ts';
import { coversOnAny } from '../specification/covers.ts';
import { eventBuilder } from '../support/call-events.ts';

describe('the body of a notification', () => {
  const common = (event: CallEvent) => ({
    conversationId: event.conversationId,
    eventId: event.id,
    timestamp: event.time,
    callId: event.callId,
    sid: event.sid,
    botId: event.botId,
  });
  const answer = {
    callConnectTime: '2026-11-20T08:00:02.000Z',
    ringDurationInMS: 1_500,
    connectDurationInMS: 2_000,
  };

  test('of an answered call', () => {
    coversOnAny(
      'notifications.answered.rule.trigger',
      'notifications.post.body.conversationId',
      'notifications.post.body.status',
      'notifications.post.body.reason',
      'notifications.post.body.reasonCode',
      'notifications.post.body.callConnectTime',
      'notifications.post.body.ringDurationInMS',
      'notifications.post.body.connectDurationInMS',
    );
    const event = eventBuilder().answered();

    expect(notificationOf(event)).toEqual({
      ...common(event),
      ...answer,
      status: 'Answered',
      reason: '200 OK',
      reasonCode: 'OK',
      sequence: 1,
    });
  });

  test('of an AMD event, with its evidence', () => {
    coversOnAny('notifications.amd.rule.trigger', 'notifications.amd.body.machineDetection');
    const event = eventBuilder().amd('amd_machine_detected');

    expect(notificationOf(event)).toEqual({
      ...common(event),
      ...answer,
      status: 'Call-In-Progress',
      reason: '200 OK',
      reasonCode: 'OK',
      machineDetection: 'amd_machine_detected',
      sequence: 1,
      amd: { reason: 'short-greeting', elapsedMs: 900, words: 2, confidence: 0.9 },
    });
  });

  test('of a completed call', () => {
    coversOnAny(
      'notifications.completed.rule.trigger',
      'notifications.completed.body.callDuration',
      'notifications.completed.body.duration',
      'notifications.completed.body.callDisconnectTime',
      'notifications.completed.body.sessionId',
      'notifications.completed.body.machineDetection',
      'notifications.completed.body.reasonCode',
    );
    const call = eventBuilder();
    call.answered();
    const event = call.completed();

    expect(notificationOf(event)).toEqual({
      ...common(event),
      ...answer,
      status: 'completed',
      reason: '200 OK',
      reasonCode: 'Caller-disconnected',
      callDuration: 12,
      duration: '12',
      callDurationMs: 12_400,
      callDisconnectTime: '2026-11-20T08:00:14.400Z',
      sessionId: 'session-1',
      machineDetection: 'amd_human_detected',
      sequence: 2,
      outcome: 'completed',
      sipStatus: 200,
    });
  });

  test('of a failed call, without the members that do not apply', () => {
    coversOnAny(
      'notifications.failed.rule.trigger',
      'notifications.failed.body.callDisconnectTime',
      'notifications.failed.body.reason',
    );
    const event = eventBuilder().failed();

    expect(notificationOf(event)).toEqual({
      ...common(event),
      status: 'Failed',
      reason: '486 Busy Here',
      reasonCode: 'Busy here',
      ringDurationInMS: 0,
      connectDurationInMS: 0,
      callDisconnectTime: '2026-11-20T08:00:03.000Z',
      sequence: 1,
      outcome: 'busy',
      sipStatus: 486,
    });
  });

  test('of a selected event has the event unchanged', () => {
    const call = eventBuilder();
    call.answered();
    const event = call.selected('dtmf');

    expect(notificationOf(event)).toEqual({
      ...common(event),
      status: 'Event',
      sequence: 2,
      event,
    });
    expect(event.data).toMatchObject({ digit: '5', notificationSequence: 2 });
  });

  test('does not exist for an event without a notification sequence', () => {
    const call = eventBuilder();
    const { notificationSequence: _, ...data } = (
      call.amd('amd_stopped') as CallEvent & { type: 'amd' }
    ).data;

    expect(notificationOf(call.dialing())).toBeUndefined();
    expect(notificationOf(call.ringing())).toBeUndefined();
    expect(
      notificationOf({ ...(call.amd('amd_stopped') as CallEvent & { type: 'amd' }), data }),
    ).toBeUndefined();
  });
});

describe('the headers of a notification', () => {
  test('are the caller’s and the gateway’s, and the gateway’s win whatever the case of the names', () => {
    const headers = mergeHeaders(
      { 'X-Tenant': 'acme', 'Content-Type': 'text/plain', Accept: 'application/json' },
      { 'content-type': 'application/json', 'gateway-signature': 't=1' },
    );

    expect(headers).toMatchObject({
      'X-Tenant': 'acme',
      'content-type': 'application/json',
      'gateway-signature': 't=1',
    });
    expect(
      Object.keys(headers).filter((name) => name.toLowerCase() === 'content-type'),
    ).toHaveLength(1);
    expect(Object.keys(headers).filter((name) => name.toLowerCase() === 'accept')).toHaveLength(1);
  });
});
