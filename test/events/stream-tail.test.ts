import { describe, expect, test } from 'vitest';
import { StreamTail } from '../../src/events/stream-tail.ts';

const at = (minute: number) => new Date(Date.UTC(2026, 10, 24, 12, minute));
const upTo = (sequence: number) => ({ sequence });

describe('the tail of a stream', () => {
  test('has lost nothing while its last sequence grows', () => {
    const tail = new StreamTail();

    expect(
      [10, 10, 25].map((sequence, minute) => tail.lostSince(sequence, upTo(0), at(minute))),
    ).toEqual([undefined, undefined, undefined]);
  });

  test('has lost what it acknowledged after the last check', () => {
    const tail = new StreamTail();
    tail.lostSince(10, upTo(0), at(10));

    // Five minutes before the check at which the stream still had all of it.
    expect(tail.lostSince(12, upTo(20), at(11))).toEqual(at(5));
    expect(tail.lostSince(12, upTo(12), at(12))).toBeUndefined();
  });

  test('looks back to the last check with a lower sequence', () => {
    const tail = new StreamTail();
    for (const [minute, sequence] of [10, 20, 30].entries()) {
      tail.lostSince(sequence, upTo(0), at(10 + minute));
    }

    expect(tail.lostSince(15, upTo(30), at(13))).toEqual(at(5));
  });

  test('has lost something although new messages have taken the place of the lost ones', () => {
    const tail = new StreamTail();
    for (const [minute, sequence] of [10, 20, 30].entries()) {
      tail.lostSince(sequence, upTo(sequence), at(10 + minute));
    }

    expect(tail.lostSince(90, { sequence: 90, reused: 16 }, at(13))).toEqual(at(5));
    expect(tail.lostSince(95, upTo(0), at(14))).toBeUndefined();
  });

  test('looks back to the first check if the stream is new', () => {
    const tail = new StreamTail();
    tail.lostSince(10, upTo(0), at(10));
    tail.lostSince(20, upTo(0), at(11));

    expect(tail.lostSince(0, upTo(20), at(12))).toEqual(at(5));
  });
});
