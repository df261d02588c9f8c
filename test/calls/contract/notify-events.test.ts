import { describe, expect, test } from 'vitest';
import {
  eventSelectors,
  selectedEventTypes,
  typesSelectedBy,
} from '../../../src/calls/contract/notify-events.ts';

describe('events that a request selects', () => {
  test.each<readonly [readonly string[], readonly string[]]>([
    [[], []],
    [['dtmf'], ['dtmf']],
    [
      ['dtmf', 'ringing', 'dtmf'],
      ['ringing', 'dtmf'],
    ],
    [['stream-*'], ['stream-started', 'stream-stopped', 'stream-failed']],
    [
      ['playback-finished', 'playback-*'],
      ['playback-started', 'playback-finished'],
    ],
    [
      ['transfer-*', 'queued'],
      ['queued', 'transfer-ringing', 'transfer-answered', 'transfer-completed', 'transfer-failed'],
    ],
    [['*'], selectedEventTypes],
    // These types have a notification of their own.
    [['answered', 'amd', 'completed', 'failed'], []],
  ])('%j', (selectors, types) => {
    expect(typesSelectedBy(selectors)).toEqual(types);
  });

  test('are all types except those with a status of their own', () => {
    expect(selectedEventTypes).toEqual([
      ...['queued', 'dialing', 'ringing', 'abandoned', 'dtmf', 'dtmf-sent', 'opted-out'],
      ...['stream-started', 'stream-stopped', 'stream-failed'],
      ...['playback-started', 'playback-finished'],
      ...['transfer-ringing', 'transfer-answered', 'transfer-completed', 'transfer-failed'],
      ...['recording-started', 'recording-paused', 'recording-resumed', 'recording-stopped'],
      ...['recording-stored', 'recording-failed'],
    ]);
  });

  test('have a wildcard for each family, and one for all types', () => {
    expect(eventSelectors.filter((selector) => selector.endsWith('*'))).toEqual([
      ...['stream-*', 'playback-*', 'transfer-*', 'recording-*', '*'],
    ]);
  });
});
