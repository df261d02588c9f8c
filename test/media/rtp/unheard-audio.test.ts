// What a call misses because the media worker was late, as opposed to what the network lost.

import { describe, expect, test } from 'vitest';
import { createDetector } from '../../../src/amd/detector.ts';
import { createPlayoutCounts } from '../../../src/media/rtp/jitter-buffer.ts';
import { UnheardAudio } from '../../../src/media/rtp/unheard-audio.ts';
import { settingsFor } from '../support/observed.ts';
import { remote, SessionBench } from '../support/session-bench.ts';

const silence = new Uint8Array(160).fill(0xff);

/** A call in which the far end sends silence from the answer on. */
function listening() {
  const bench = new SessionBench(() => createDetector(settingsFor()));
  bench.session.applyRemote(remote, 'answer');
  bench.session.startDetection(settingsFor());
  const hear = (ticks: number) => {
    for (let tick = 0; tick < ticks; tick += 1) {
      bench.receive(silence);
      bench.tick(1);
    }
  };
  /** The clock runs ticks that are late, after this many packets came at once. */
  const catchUp = (packets: number, ticks: number) => {
    for (let packet = 0; packet < packets; packet += 1) bench.receive(silence);
    for (let tick = 0; tick < ticks; tick += 1) bench.session.tick(false);
  };
  /** The network loses this many packets. */
  const lose = (packets: number) => {
    bench.sequence += packets;
    bench.timestamp += 160 * packets;
  };
  return { bench, hear, catchUp, lose };
}

describe('audio that a call did not hear', () => {
  test('counts if it was skipped because too much came at once after a stall', () => {
    const { bench, hear, catchUp } = listening();
    hear(20);
    catchUp(50, 50);

    // The last packet is 1,020 ms ahead, and the jitter buffer skips what exceeds 600 ms.
    expect(Math.round(bench.counts.framesUnheard * 20)).toBe(420);
  });

  test('counts if it was missing in ticks that ran late, because the kernel had dropped it', () => {
    const { bench, hear, catchUp, lose } = listening();
    hear(20);
    catchUp(25, 25);
    lose(40);
    catchUp(0, 40);
    hear(20);

    expect(Math.round(bench.counts.framesUnheard)).toBe(40);
  });

  test('does not count if the network lost it, or if the far end has not sent anything', () => {
    const { bench, hear, catchUp, lose } = listening();
    catchUp(0, 40);
    hear(20);
    lose(40);
    bench.tick(40);
    hear(20);

    expect(bench.counts.framesUnheard).toBe(0);
  });

  test('does not count if it was heard late', () => {
    const { bench, hear, catchUp } = listening();
    hear(20);
    catchUp(25, 25);
    hear(20);

    expect(bench.counts).toMatchObject({ framesLate: 25, framesUnheard: 0 });
  });

  test('counts once if it was skipped and a frame is missing in its place', () => {
    const counts = createPlayoutCounts();
    const unheard = new UnheardAudio(counts);
    counts.skippedSamples = 320;

    expect(unheard.tick(false, false)).toBe(40);
    expect([1, 2, 3].map(() => unheard.tick(false, true))).toEqual([0, 0, 20]);
    // Until the clock has been in time for a while, what is missing may still have been on its way.
    expect([1, 2, 3].map(() => unheard.tick(true, true))).toEqual([20, 20, 0]);
  });
});

test('a call of which too much went unheard does not report that nobody spoke', () => {
  const { bench, hear, catchUp, lose } = listening();
  hear(50);
  lose(175);
  catchUp(25, 200);
  // 5 s have passed since the answer, and 3.5 s of them went unheard.
  hear(499);
  expect(bench.amd).toEqual([]);
  hear(1);

  const unheardMs = Math.round(bench.counts.framesUnheard * 20);
  expect(unheardMs).toBeGreaterThan(3_000);
  expect(bench.amd).toEqual([
    { event: 'amd_error', reason: 'audio-unheard', elapsedMs: 15_000, unheardMs },
    { event: 'amd_stopped', reason: 'error', elapsedMs: 15_000, unheardMs },
  ]);
});
