// Whatever the detector hears, and whenever the call ends, the events follow the grammar and the
// clock never runs backwards.

import { describe, expect, test } from 'vitest';
import { createDetector } from '../../src/amd/detector.ts';
import { EventGrammar, type Heard } from '../../src/amd/event-grammar.ts';
import { frameSamples } from '../../src/amd/frame.ts';
import type { AmdSettings, AmdTimers } from '../../src/calls/call-types.ts';
import type { AmdEvent } from '../../src/calls/detection/amd-event.ts';
import { grammarFault } from './grammar-check.ts';
import { defaultSettings, names } from './listen.ts';
import { anything, type Random, seededRandom } from './made-up-audio.ts';

function someTimers(random: Random): AmdTimers {
  const upTo = (ms: number) => Math.round(random() * ms);
  return {
    noSpeechTimeoutMs: upTo(8_000),
    decisionTimeoutMs: upTo(20_000),
    toneTimeoutMs: upTo(30_000),
    greetingCompletionTimeoutMs: upTo(4_000),
  };
}

/** Runs one call with lost and truncated frames. The far end hangs up at a random time. */
function wholeCall(seed: number): AmdEvent[] {
  const random = seededRandom(seed);
  const settings: AmdSettings = {
    timers: someTimers(random),
    ...(random() < 0.5 ? {} : { thresholdWordCount: 1 + Math.floor(random() * 12) }),
  };
  const detector = createDetector(settings);
  const samples = anything(random, 30_000);
  const endFrame = Math.floor(random() * 2_500);
  const lossShare = random() < 0.5 ? 0 : random();
  const events: AmdEvent[] = [];
  for (let index = 0; index < endFrame; index += 1) {
    const frame = new Int16Array(random() < 0.01 ? 80 : frameSamples);
    frame.set(samples.subarray(index * frameSamples, index * frameSamples + frame.length));
    events.push(...detector.push(frame, random() < lossShare));
  }
  events.push(...detector.stop('call-ended'), ...detector.stop('plans-over'));
  events.push(...detector.push(new Int16Array(frameSamples), false));
  return events;
}

describe('order of detection events', () => {
  test('holds for 150 calls of random audio, loss, timers and ends', () => {
    const verdicts = new Set<string>();
    for (let seed = 1; seed <= 150; seed += 1) {
      const events = wholeCall(seed);

      expect(grammarFault(events), `seed ${seed}`).toBeUndefined();
      for (const { event } of events) verdicts.add(event);
    }

    // The random calls reached every event except the failure of the detector itself.
    expect([...verdicts].sort()).toEqual([
      'amd_decision_timeout',
      'amd_human_detected',
      'amd_machine_detected',
      'amd_machine_stopped_speaking',
      'amd_no_speech_detected',
      'amd_stopped',
      'amd_tone_detected',
    ]);
  });

  test('the same frames give the same events', () => {
    for (const seed of [3, 14, 159]) expect(wholeCall(seed)).toEqual(wholeCall(seed));
  });
});

describe('a detector that fails', () => {
  const heard = (pauseMs: number): Heard => ({
    utterance: {
      speechMs: 400,
      onsetMs: 0,
      spanMs: 400,
      pauseMs,
      longestGapMs: 0,
      waitedMs: 0,
      beginning: false,
      syllables: 1,
      words: 1,
      bursts: 1,
    },
    found: undefined,
    tonePending: false,
    toneHz: 0,
    ending: undefined,
  });

  test('states an error while it has no verdict', () => {
    const grammar = new EventGrammar(defaultSettings);
    grammar.advance(heard(0));

    expect(names(grammar.fail())).toEqual(['amd_error', 'amd_stopped']);
    expect(grammar.done).toBe(true);
    expect(grammar.fail()).toEqual([]);
  });

  test('does not change a verdict', () => {
    const grammar = new EventGrammar(defaultSettings);

    expect(names(grammar.advance(heard(1_000)))).toEqual(['amd_human_detected']);
    expect(grammar.fail()).toMatchObject([{ event: 'amd_stopped', reason: 'error' }]);
  });
});
