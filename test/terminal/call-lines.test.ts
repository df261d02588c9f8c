// Tests the lines about calls in a gateway's terminal.

import { describe, expect, test } from 'vitest';
import type { CallEvent } from '../../src/calls/contract/call-event.ts';
import { amdEvent } from '../../src/calls/detection/detection-events.ts';
import {
  answeredEvent,
  type CallProgress,
  dialingEvent,
  endEvent,
  nextEvent,
  progressOfAccepted,
  queuedEvent,
  ringingEvent,
} from '../../src/calls/life/call-events.ts';
import { attemptDelivery, type Delivery } from '../../src/notifier/delivery.ts';
import { type AttemptResult, defaultRetrySchedule } from '../../src/notifier/delivery-rules.ts';
import { createCallWatcher } from '../../src/terminal/call-lines.ts';
import { acceptedCall } from '../support/scripted-call.ts';

const call = acceptedCall({ target: { kind: 'tel', number: '15551234567' } });
const accepted = progressOfAccepted(call);
const at = (s: number) => new Date(call.acceptedAt.getTime() + s * 1_000);
/** Returns the progress of a call after the event with this sequence. */
const following = <Progress extends CallProgress>(eventSequence: number, progress: Progress) => ({
  ...progress,
  eventSequence,
});
const answered = { ...accepted, sentAt: at(1), ringingAt: at(2), answeredAt: at(3.5) };

function linesOf(...events: readonly CallEvent[]): readonly string[] {
  const lines: string[] = [];
  const watcher = createCallWatcher(({ text }) => lines.push(text));
  for (const event of events) watcher.onEvent(event);
  return lines;
}

describe('the steps of a call', () => {
  test('have one line each', () => {
    const heard = { event: 'amd_human_detected', reason: 'short-greeting', words: 2 } as const;
    const detected: CallProgress = { ...answered, amdEvents: [{ ...heard, elapsedMs: 900 }] };
    const hungUp = {
      at: at(13.5),
      outcome: 'completed',
      reasonCode: 'Caller-disconnected',
    } as const;

    expect(
      linesOf(
        queuedEvent(call),
        dialingEvent(accepted, at(1), '127.0.0.1:5060').event,
        ringingEvent(following(2, accepted), at(2), {
          sipStatus: 183,
          sipReason: 'Session Progress',
          earlyMedia: true,
        }).event,
        answeredEvent(following(3, answered)).event,
        amdEvent(following(4, { ...detected, answeredAt: at(3.5) }), at(5), {
          ...heard,
          elapsedMs: 900,
          transcript: 'hello this is Jane',
        }).event,
        nextEvent(following(5, answered), 'dtmf', at(6), { digit: '7', source: 'rtp' }).event,
        endEvent(following(6, detected), { ...hungUp, reason: '200 OK' }).event,
      ),
    ).toEqual([
      'queued by app-1 for bot bot-1, trunk sandbox',
      'dialing over 127.0.0.1:5060',
      'ringing (183 Session Progress, early media)',
      'answered after ringing 1.5 s',
      'amd_human_detected (short-greeting, 2 words)',
      'a digit was pressed',
      'completed: Caller-disconnected, 10.0 s after the answer',
    ]);
  });

  test('explain why another gateway is tried, and why a call failed', () => {
    const failedAttempts = [
      { gateway: '10.0.0.1:5060', sipStatus: 503, reason: 'Service Unavailable', durationMs: 20 },
    ];
    const busy = { outcome: 'busy', reason: '486 Busy Here', reasonCode: 'Busy here' } as const;

    expect(
      linesOf(
        dialingEvent({ ...accepted, failedAttempts }, at(1), '10.0.0.2:5060').event,
        endEvent(accepted, { ...busy, at: at(3), sipStatus: 486 }).event,
      ),
    ).toEqual([
      'dialing over 10.0.0.2:5060, gateway 2, because 10.0.0.1:5060 failed: 503 Service Unavailable',
      'failed: 486 Busy Here (busy)',
    ]);
  });

  test('are printed once, even if an event arrives again', () => {
    expect(linesOf(queuedEvent(call), queuedEvent(call))).toHaveLength(1);
  });

  test('mask phone numbers and terminal commands in the reason of a far end', () => {
    const sipReason = 'Calling +15551234567\u001b[2J';

    expect(
      linesOf(
        ringingEvent(accepted, at(2), { sipStatus: 180, sipReason, earlyMedia: false }).event,
      ),
    ).toEqual(['ringing (180 Calling ***?[2J)']);
  });
});

async function attemptLine(result: AttemptResult, notification = {}): Promise<string | undefined> {
  const delivery = await attemptDelivery(
    {
      sender: { send: async () => result, close: async () => undefined },
      secrets: async () => ['whsec_c2VjcmV0'],
      schedule: defaultRetrySchedule,
      now: () => at(10),
      random: () => 0,
      version: 'test',
    },
    {
      ...{ eventId: 'evt-1', appId: 'app-1', sequence: 1, attempts: 0, attemptsBefore: 0 },
      ...{ body: JSON.stringify({ status: 'Answered' }), owedSince: at(3).getTime() },
      ...notification,
    },
    call.callId,
    { appId: 'app-1', accountId: 'account-1', notifyUrl: 'http://127.0.0.1:4000/secret' },
    () => true,
  );
  const lines: string[] = [];
  const watcher = createCallWatcher(({ text }) => lines.push(text));
  watcher.onDelivery(delivery as Delivery, 'http://127.0.0.1:4000');
  return lines[0];
}

describe('an attempt to notify', () => {
  const refused = { kind: 'unreachable', error: 'ECONNREFUSED' } as const;

  test.each([
    [refused, {}, '→ 127.0.0.1:4000 #1 Answered: ECONNREFUSED, again in 2 s'],
    [refused, { attempts: 4 }, '→ 127.0.0.1:4000 #1 Answered: ECONNREFUSED, again in 10 min'],
    [{ kind: 'response', status: 200 }, {}, '→ 127.0.0.1:4000 #1 Answered: 200'],
    [
      { kind: 'response', status: 204 },
      { attempts: 2 },
      '→ 127.0.0.1:4000 #1 Answered: 204, attempt 3',
    ],
    [{ kind: 'response', status: 410 }, {}, '→ 127.0.0.1:4000 #1 Answered: 410, given up (gone)'],
    [
      { kind: 'response', status: 200 },
      {
        sequence: 2,
        body: '{"status":"Call-In-Progress","machineDetection":"amd_human_detected"}',
      },
      '→ 127.0.0.1:4000 #2 amd_human_detected: 200',
    ],
    [
      { kind: 'response', status: 200 },
      { sequence: 3, body: '{"status":"Event","event":{"type":"dtmf","data":{"digit":"5"}}}' },
      '→ 127.0.0.1:4000 #3 dtmf: 200',
    ],
  ] as const)('with %j, %j is: %3$s', async (result, notification, line) => {
    expect(await attemptLine(result, notification)).toBe(line);
  });
});
