// Whatever a recogniser claims, and whenever it does, the order of events, the clock and the timers
// stay with the detector.

import { expect, test } from 'vitest';
import { createDetector } from '../../src/amd/detector.ts';
import { frameMs, frameSamples } from '../../src/amd/frame.ts';
import type { SettlingPhrase, Transcription } from '../../src/amd/stt/transcription.ts';
import { defaultAmdTimers } from '../../src/calls/call-types.ts';
import type { AmdEvent } from '../../src/calls/detection/amd-event.ts';
import { grammarFault } from '../amd/grammar-check.ts';
import { anything, type Random, seededRandom } from '../amd/made-up-audio.ts';

const calls = 40;
const longestMs = 70_000;
const phrases: readonly (SettlingPhrase | undefined)[] = [
  undefined,
  undefined,
  undefined,
  'voicemail-phrase',
  'call-screening',
];

function claim(random: Random, nowMs: number): Transcription {
  const phrase = phrases[Math.floor(random() * phrases.length)];
  return {
    words: Math.floor(random() * 30),
    heardUntilMs: random() * 2 * nowMs,
    asksForHelp: random() < 0.2,
    ...(phrase === undefined ? {} : { phrase }),
  };
}

function listen(seed: number): AmdEvent[] {
  const random = seededRandom(seed);
  const audio = anything(random, 30_000);
  const detector = createDetector({
    timers: defaultAmdTimers,
    ...(random() < 0.5 ? { thresholdWordCount: 1 + Math.floor(random() * 12) } : {}),
  });
  const events: AmdEvent[] = [];
  for (let ms = 0; ms < longestMs && !detector.done; ms += frameMs) {
    if (random() < 0.02) detector.understand(claim(random, ms));
    const at = (ms / frameMs) * frameSamples;
    const frame = new Int16Array(frameSamples);
    frame.set(audio.subarray(at, at + frameSamples));
    events.push(...detector.push(frame, random() < 0.02));
  }
  return events;
}

test('the order of events holds whatever a recogniser claims', () => {
  for (let seed = 1; seed <= calls; seed += 1) {
    const events = listen(seed);
    expect(grammarFault(events), `seed ${seed}`).toBeUndefined();
    expect(events[0]?.elapsedMs).toBeLessThanOrEqual(defaultAmdTimers.decisionTimeoutMs);
    expect(events.at(-1)?.event).toBe('amd_stopped');
  }
});
