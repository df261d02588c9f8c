import { describe, expect, test } from 'vitest';
import { closingAmdEvents } from '../../../src/calls/detection/amd-event.ts';

describe('detection that does not close itself', () => {
  test('fails and then stops, for the same reason at the same time', () => {
    expect(closingAmdEvents('media-lost', 1_240)).toEqual([
      { event: 'amd_error', reason: 'media-lost', elapsedMs: 1_240 },
      { event: 'amd_stopped', reason: 'media-lost', elapsedMs: 1_240 },
    ]);
  });

  test('never ends before the answer, and has whole milliseconds', () => {
    const times = [-3, 0, 12.6].map((elapsedMs) => closingAmdEvents('call-ended', elapsedMs)[1]);
    expect(times.map(({ elapsedMs }) => elapsedMs)).toEqual([0, 0, 13]);
  });
});
