import { describe, expect, test } from 'vitest';
import { StreamTail } from '../../src/events/stream-tail.ts';

const at = (minute: number) => new Date(Date.UTC(2026, 10, 24, 12, minute));

describe('the tail of a stream', () => {
  test('has lost nothing while its last sequence grows', () => {
    const tail = new StreamTail();

    expect([10, 10, 25].map((sequence, minute) => tail.lostSince(sequence, 0, at(minute)))).toEqual(
      [undefined, undefined, undefined],
    );
  });

  test('has lost what it acknowledged after the last check', () => {
    const tail = new StreamTail();
    tail.lostSince(10, 0, at(10));

    // Five minutes before the check at which the stream still had all of it.
    expect(tail.lostSince(12, 20, at(11))).toEqual(at(5));
    expect(tail.lostSince(12, 12, at(12))).toBeUndefined();
  });

  test('looks back to the last check with a lower sequence', () => {
    const tail = new StreamTail();
    for (const [minute, sequence] of [10, 20, 30].entries()) {
      tail.lostSince(sequence, 0, at(10 + minute));
    }

    expect(tail.lostSince(15, 30, at(13))).toEqual(at(5));
  });

  test('looks back to the first check if the stream is new', () => {
    const tail = new StreamTail();
    tail.lostSince(10, 0, at(10));
    tail.lostSince(20, 0, at(11));

    expect(tail.lostSince(0, 20, at(12))).toEqual(at(5));
  });
});
