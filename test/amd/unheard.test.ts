// A gateway that did not hear the call must not conclude anything from silence.

import { describe, expect, test } from 'vitest';
import { EventGrammar, type Heard } from '../../src/amd/event-grammar.ts';
import type { AmdEvent } from '../../src/calls/detection/amd-event.ts';
import { defaultSettings } from './listen.ts';

/** A hello of 400 ms, or nothing, and the silence after it. */
function heard(pauseMs: number | undefined): Heard {
  const nothingElse = { found: undefined, tonePending: false, toneHz: 0, ending: undefined };
  if (pauseMs === undefined) return { utterance: undefined, ...nothingElse };
  const spoken = { speechMs: 400, onsetMs: 0, spanMs: 400, longestGapMs: 0, waitedMs: 0 };
  const utterance = { ...spoken, pauseMs, beginning: false, bursts: 1, syllables: 1, words: 1 };
  return { utterance, ...nothingElse };
}

/** A call that is silent, or silent after a hello, and of which `unheard` frames go unheard. */
function call(frames: number, unheard: (frame: number) => boolean, saysHello: boolean): AmdEvent[] {
  const grammar = new EventGrammar(defaultSettings);
  return Array.from({ length: frames }).flatMap((_, frame) => {
    const pauseMs = saysHello ? Math.max(0, 20 * (frame - 20)) : undefined;
    return grammar.advance(heard(pauseMs), unheard(frame) ? 20 : 0);
  });
}

const never = () => false;
const firstSecond = (frame: number) => frame < 50;

describe('no-speech', () => {
  test('is reported when the timer expires if a tenth went unheard', () => {
    const tenth = (frame: number) => frame < 25;

    expect(call(250, tenth, false)).toMatchObject([
      { event: 'amd_no_speech_detected', elapsedMs: 5_000, unheardMs: 500 },
      { event: 'amd_stopped' },
    ]);
  });

  test('waits until enough of the call was heard', () => {
    expect(call(499, firstSecond, false)).toEqual([]);
    expect(call(500, firstSecond, false)).toMatchObject([
      { event: 'amd_no_speech_detected', elapsedMs: 10_000, unheardMs: 1_000 },
      { event: 'amd_stopped' },
    ]);
  });

  test('waits for twice the timer at most', () => {
    const often = (frame: number) => frame % 5 === 0;

    expect(call(749, often, false)).toEqual([]);
    expect(call(750, often, false)).toEqual([
      { event: 'amd_error', reason: 'audio-unheard', elapsedMs: 15_000, unheardMs: 3_000 },
      { event: 'amd_stopped', reason: 'error', elapsedMs: 15_000, unheardMs: 3_000 },
    ]);
  });
});

describe('a person', () => {
  test('is reported after a silence that was heard', () => {
    expect(call(56, never, true)).toMatchObject([{ event: 'amd_human_detected', pauseMs: 680 }]);
    expect(call(56, never, true)[0]).not.toHaveProperty('unheardMs');
  });

  test('is not reported after a silence of which too much went unheard', () => {
    const inSilence = (frame: number) => frame >= 30 && frame < 40;
    const [first] = call(400, inSilence, true);

    // 200 ms are a tenth of 2 s of silence.
    expect(first).toMatchObject({ event: 'amd_human_detected', pauseMs: 2_000, unheardMs: 200 });
  });

  test('who was never heard well enough is an error at the decision timeout', () => {
    const often = (frame: number) => frame % 5 === 0;
    const { decisionTimeoutMs } = defaultSettings.timers;
    const events = call((3 * decisionTimeoutMs) / 20, often, true);

    expect(events).toMatchObject([
      { event: 'amd_error', reason: 'audio-unheard', elapsedMs: 3 * decisionTimeoutMs },
      { event: 'amd_stopped', reason: 'error' },
    ]);
  });
});
