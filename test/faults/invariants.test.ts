// The checker itself: each invariant is seen to be broken where it is.

import { describe, expect, test } from 'vitest';
import type { FarCall } from '../support/far-end.ts';
import { type Aftermath, violations } from './invariants.ts';

const at = (seconds: number) => Date.parse('2026-01-01T00:00:00.000Z') + seconds * 1_000;

function event(eventSequence: number, type: string, seconds = 5) {
  const id = type === 'completed' ? 'evt-c-end' : `evt-c-${eventSequence}`;
  const body = { id, type, time: new Date(at(seconds)).toISOString(), callId: 'c', eventSequence };
  return { raw: JSON.stringify(body), event: body };
}

function told(sequence: number, status: string) {
  const eventId = status === 'completed' ? 'evt-c-end' : `evt-c-${sequence}`;
  const body = { eventId, callId: 'c', sequence, status };
  return { raw: JSON.stringify(body), body };
}

const phone: FarCall = {
  sipCallId: 's1',
  number: '1',
  invitedAt: at(1),
  answeredAt: at(2),
  endedAt: at(6),
  byesAt: [],
};
const good: Aftermath = {
  accepted: new Map([['1', 'c']]),
  farCalls: [phone],
  events: [event(1, 'queued'), event(2, 'answered'), event(3, 'completed')],
  notifications: [told(1, 'Answered'), told(2, 'completed')],
  startedAt: at(0),
  engineDeaths: [],
  botConnections: [{ bot: 'talk', number: '1', openedAt: at(2), closedAt: at(6) }],
  agents: new Map([['2', '1']]),
  faults: [{ from: at(20), to: at(25) }],
};

describe('the invariants', () => {
  test('hold for a call that was told whole, also where something was told twice', () => {
    expect(violations(good)).toEqual([]);
    const repeated = { ...good, events: [...good.events, event(2, 'answered')] };
    expect(violations(repeated)).toEqual([]);
  });

  test.each<[string, Partial<Aftermath>]>([
    ['0 terminal events', { events: good.events.slice(0, 2) }],
    ['0 terminal notifications', { notifications: [told(1, 'Answered')] }],
    ['2 INVITEs', { farCalls: [phone, { ...phone, sipCallId: 's2' }] }],
    ['has 1 queued, 3 completed', { events: [event(1, 'queued'), event(3, 'completed')] }],
    ['3 completed, 3 amd', { events: [...good.events, event(3, 'amd')] }],
    ['amd is its last event', { events: [...good.events, event(4, 'amd')] }],
    ['two bodies on the stream', { events: [...good.events, event(3, 'completed', 6)] }],
    ['notifications 2', { notifications: [told(2, 'completed')] }],
    [
      'two bodies delivered',
      { notifications: [...good.notifications, { ...told(2, 'completed'), raw: '{}' }] },
    ],
    ['is still connected', { botConnections: [{ bot: 'deaf', number: '1', openedAt: at(2) }] }],
    [
      'was connected 1000 ms too long',
      { botConnections: [{ bot: 'talk', number: '1', openedAt: at(2), closedAt: at(31) }] },
    ],
    [
      'its stream stopped 2 times',
      {
        events: [
          ...[event(1, 'queued'), event(2, 'stream-stopped'), event(3, 'stream-stopped')],
          event(4, 'completed'),
        ],
      },
    ],
    ['ms too long', { farCalls: [{ ...phone, endedAt: at(16) }] }],
    [
      'Infinity ms too long',
      {
        farCalls: [
          { sipCallId: 's1', number: '1', invitedAt: at(1), answeredAt: at(2), byesAt: [] },
        ],
      },
    ],
    ['c: its phone was up', { farCalls: [{ ...phone, number: '2', endedAt: at(16) }] }],
    [
      'one of its phones was hung up at 6.0 s, 7.0 s',
      { farCalls: [{ ...phone, number: '2', byesAt: [at(6), at(7)] }] },
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
  ])('are broken: %s', (sentence, changes) => {
    expect(violations({ ...good, ...changes }).join('\n')).toContain(sentence);
  });

  test('excuse a second BYE where the answer to the first may have been lost', () => {
    const again = { ...phone, byesAt: [at(21), at(24)] };
    expect(violations({ ...good, farCalls: [{ ...again, endedAt: at(6) }] })).toEqual([]);
    const lasting = { ...good, faults: [{ from: at(3) }] };
    expect(violations({ ...lasting, farCalls: [{ ...phone, byesAt: [at(5), at(9)] }] })).toEqual(
      [],
    );
  });

  test('give a phone 42 s where the engine died before its 200 was acknowledged', () => {
    const late = { ...good, farCalls: [{ ...phone, endedAt: at(40) }], engineDeaths: [at(1.5)] };
    expect(violations(late)).toEqual([]);
    expect(violations({ ...late, engineDeaths: [at(0.5)] })).toHaveLength(1);
  });
});
