// Tests the invariants themselves: each detects its violation.

import { describe, expect, test } from 'vitest';
import type { FarCall } from '../support/far-end.ts';
import type { Aftermath, Fault } from './aftermath.ts';
import { violations } from './invariants.ts';

const at = (seconds: number) => Date.parse('2026-01-01T00:00:00.000Z') + seconds * 1_000;

type Data = Readonly<Record<string, unknown>>;

function event(eventSequence: number, type: string, seconds = 5, data: Data = {}) {
  const id = type === 'completed' ? 'evt-c-end' : `evt-c-${eventSequence}`;
  const time = new Date(at(seconds)).toISOString();
  const body = { id, type, time, callId: 'c', eventSequence, data };
  return { raw: JSON.stringify(body), event: body };
}

function notification(sequence: number, status: string) {
  const eventId = status === 'completed' ? 'evt-c-end' : `evt-c-${sequence}`;
  const body = { eventId, callId: 'c', sequence, status };
  return { raw: JSON.stringify(body), body };
}

const message = { playbackId: 'voicemail', source: 'voicemail' };
const started = ['playback-started', 5, message] as const;
const finished = ['playback-finished', 5, { ...message, reason: 'done' }] as const;

/**
 * Returns the events of a call: `queued`, the given events, and `completed` unless they end with
 * it.
 */
function between(...events: readonly ReturnType<typeof event>[]) {
  const last = events.at(-1)?.event;
  const isWhole = last?.type === 'completed';
  const end = isWhole ? [] : [event((last?.eventSequence ?? 1) + 1, 'completed')];
  return [event(1, 'queued'), ...events, ...end];
}

const hungUp = (seconds: number) => ({ at: at(seconds), status: 200 as const });
const again = (seconds: number) => ({ at: at(seconds), status: 481 as const });

const phone: FarCall = {
  sipCallId: 's1',
  number: '1',
  invitedAt: at(1),
  answeredAt: at(2),
  endedAt: at(6),
  byes: [],
};
const good: Aftermath = {
  accepted: new Map([['1', 'c']]),
  refused: new Set(['3']),
  farCalls: [phone],
  events: [event(1, 'queued'), event(2, 'answered'), event(3, 'completed')],
  notifications: [notification(1, 'Answered'), notification(2, 'completed')],
  startedAt: at(0),
  engineDeaths: [],
  botConnections: [{ bot: 'talk', number: '1', openedAt: at(2), closedAt: at(6) }],
  agents: new Map([['2', '1']]),
  faults: [{ what: 'kill a', from: at(20), to: at(25) }],
};

describe('the invariants', () => {
  test('hold for a call whose events and notifications are complete, even if an event arrived twice', () => {
    expect(violations(good)).toEqual([]);
    const repeated = { ...good, events: [...good.events, event(2, 'answered')] };
    expect(violations(repeated)).toEqual([]);
  });

  test.each<[string, Partial<Aftermath>]>([
    ['0 terminal events', { events: good.events.slice(0, 2) }],
    ['0 terminal notifications', { notifications: [notification(1, 'Answered')] }],
    ['1: its request was refused, but its phone rang', { refused: new Set(['1']) }],
    ['2 INVITEs', { farCalls: [phone, { ...phone, sipCallId: 's2' }] }],
    ['has 1 queued, 3 completed', { events: [event(1, 'queued'), event(3, 'completed')] }],
    ['3 completed, 3 amd', { events: [...good.events, event(3, 'amd')] }],
    ['amd is its last event', { events: [...good.events, event(4, 'amd')] }],
    ['two bodies on the stream', { events: [...good.events, event(3, 'completed', 6)] }],
    ['notifications 2', { notifications: [notification(2, 'completed')] }],
    [
      'two bodies delivered',
      { notifications: [...good.notifications, { ...notification(2, 'completed'), raw: '{}' }] },
    ],
    ['is still connected', { botConnections: [{ bot: 'deaf', number: '1', openedAt: at(2) }] }],
    [
      'was connected 1000 ms too long',
      { botConnections: [{ bot: 'talk', number: '1', openedAt: at(2), closedAt: at(31) }] },
    ],
    [
      'the stream of the request had ended before stream-stopped',
      { events: between(event(2, 'stream-stopped'), event(3, 'stream-stopped')) },
    ],
    [
      'the stream bot had ended before stream-started',
      {
        events: between(
          event(2, 'stream-failed', 5, { commandId: 'bot' }),
          event(3, 'stream-started', 5, { commandId: 'bot' }),
        ),
      },
    ],
    [
      'voicemail started twice without an outcome',
      { events: between(event(2, ...started), event(3, ...started)) },
    ],
    ['voicemail has two outcomes', { events: between(event(2, ...finished)) }],
    ['a sound that it played has no outcome', { events: between(event(2, ...started)) }],
    [
      'a message was played, but its end (undefined) does not report one',
      { events: between(event(2, ...started), event(3, ...finished)) },
    ],
    [
      'no message was played, but its end (voicemail-left) does not report one',
      { events: [event(1, 'queued'), event(2, 'completed', 5, { outcome: 'voicemail-left' })] },
    ],
    ['ms too long', { farCalls: [{ ...phone, endedAt: at(16) }] }],
    [
      'Infinity ms too long',
      {
        farCalls: [{ sipCallId: 's1', number: '1', invitedAt: at(1), answeredAt: at(2), byes: [] }],
      },
    ],
    ['c: its phone was up', { farCalls: [{ ...phone, number: '2', endedAt: at(16) }] }],
    [
      'one of its phones was hung up at 7.0 s, and was over at 6.0 s (faults: none)',
      { farCalls: [{ ...phone, number: '2', byes: [hungUp(6), again(7)] }] },
    ],
    [
      'one of its phones was hung up at 21.0 s, 22.0 s, and was over at 6.0 s (faults: kill a)',
      { farCalls: [{ ...phone, byes: [hungUp(6), again(21), again(22)] }] },
    ],
    [
      '2 transfers were completed',
      {
        events: [
          ...[event(1, 'queued'), event(2, 'transfer-completed'), event(3, 'transfer-completed')],
          event(4, 'completed'),
        ],
      },
    ],
  ])('report the violation: %s', (sentence, changes) => {
    expect(violations({ ...good, ...changes }).join('\n')).toContain(sentence);
  });

  test('allow one repeated BYE per fault after which a process may not have known of the first BYE', () => {
    const phones = [{ ...phone, byes: [hungUp(6), again(24)] }];
    expect(violations({ ...good, farCalls: phones })).toEqual([]);
    const lasting = { what: 'cut b', from: at(3) };
    const twice = [{ ...phone, byes: [hungUp(6), again(9), again(21)] }];
    expect(violations({ ...good, faults: [lasting], farCalls: twice })).toHaveLength(1);
    // The gateway's BYE crossed the phone's BYE.
    expect(violations({ ...good, farCalls: [{ ...phone, byes: [again(6.5)] }] })).toEqual([]);
    expect(violations({ ...good, farCalls: [{ ...phone, byes: [again(7.5)] }] })).toHaveLength(1);
    expect(violations({ ...good, faults: [lasting, ...good.faults], farCalls: twice })).toEqual([]);
  });

  test('hold for consecutive streams and sounds, and for a sound that a lost process left open', () => {
    const bot = { commandId: 'bot' };
    const streams = [
      ...[event(2, 'stream-started'), event(3, 'stream-failed', 5, { willRetry: true })],
      ...[event(4, 'stream-started'), event(5, 'stream-stopped')],
      ...[event(6, 'stream-started', 5, bot), event(7, 'stream-stopped', 5, bot)],
    ];
    expect(violations({ ...good, events: between(...streams) })).toEqual([]);
    const left = { outcome: 'voicemail-left', voicemail: {} };
    const restarted = [
      ...[event(2, ...started), event(3, ...finished)],
      ...[event(4, ...started), event(5, ...finished)],
    ];
    expect(
      violations({ ...good, events: between(...restarted, event(6, 'completed', 5, left)) }),
    ).toEqual([]);
    const lost = { outcome: 'gateway-failure', reason: 'Gateway lost; …', voicemail: {} };
    const cut = [event(1, 'queued'), event(2, ...started), event(3, 'completed', 5, lost)];
    expect(violations({ ...good, events: cut })).toEqual([]);
  });

  test('give a phone 42 s if the engine died before its 200 was acknowledged', () => {
    const late = {
      ...good,
      farCalls: [{ ...phone, endedAt: at(40) }],
      engineDeaths: [{ at: at(1.5) }],
    };
    expect(violations(late)).toEqual([]);
    expect(violations({ ...late, engineDeaths: [{ at: at(0.5) }] })).toHaveLength(1);
  });

  test('measure how long a phone stays up from the return of the engine', () => {
    const up = { ...phone, acknowledgedAt: at(2.1), endedAt: at(20) };
    const away = { at: at(4), backAt: at(12) };
    expect(violations({ ...good, farCalls: [up], engineDeaths: [away] })).toEqual([]);
    const short = { ...away, backAt: at(8) };
    expect(violations({ ...good, farCalls: [up], engineDeaths: [short] })).toHaveLength(1);
  });

  test('measure it from the death of a node that could not hang up until it died', () => {
    const up = { ...good, farCalls: [{ ...phone, endedAt: at(19) }] };
    const cut: Fault = {
      ...{ what: 'cut b', node: 'b', effect: 'hindered', from: at(4), to: at(12) },
    };
    const death: Fault = {
      ...{ what: 'kill b', node: 'b', effect: 'died', from: at(10), to: at(15) },
    };
    const { effect: _, ...fromSql } = cut;
    expect(violations({ ...up, faults: [cut, death] })).toEqual([]);
    for (const faults of [
      ...[[cut], [death], [fromSql, death], [cut, { ...death, node: 'a' }]],
      ...[
        [cut, { ...death, from: at(8) }],
        [{ ...cut, to: at(9) }, death],
      ],
    ]) {
      expect(violations({ ...up, faults }), JSON.stringify(faults)).toHaveLength(1);
    }
  });
});
