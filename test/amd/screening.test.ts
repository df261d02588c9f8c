// An assistant asks who is calling. It is a machine, but detection does not end there: it judges
// the next voice afresh.

import { describe, expect, test } from 'vitest';
import { createDetector } from '../../src/amd/detector.ts';
import { frameSamples } from '../../src/amd/frame.ts';
import type { AmdEvent } from '../../src/calls/detection/amd-event.ts';
import { createSounds } from '../../src/embedded/sandbox/sounds.ts';
import { joined, silence, tone } from '../../src/embedded/sandbox/tones.ts';
import { grammarFault } from './grammar-check.ts';
import { defaultSettings, names } from './listen.ts';

const sounds = createSounds();
const question = sounds.announcement.samples;

/** Runs a call in which the recogniser understands the question two seconds after its start. */
function screened(answer: Int16Array): AmdEvent[] {
  const detector = createDetector(defaultSettings);
  const samples = joined([question, silence(2_500), answer]);
  const events: AmdEvent[] = [];
  for (let ms = 0; ms < 70_000 && !detector.done; ms += 20) {
    if (ms === 2_000) {
      detector.understand({ words: 6, heardUntilMs: ms, phrase: 'call-screening' });
    }
    const frame = new Int16Array(frameSamples);
    frame.set(samples.subarray(ms * 8, ms * 8 + frameSamples));
    events.push(...detector.push(frame, false));
  }
  expect(grammarFault(events)).toBeUndefined();
  expect(events[0]).toMatchObject({ event: 'amd_machine_detected', reason: 'call-screening' });
  return events;
}

describe('call screening', () => {
  test('with a person after it: the reason of amd_stopped says so', () => {
    const events = screened(sounds.hello.samples);

    expect(names(events).slice(1)).toEqual(['amd_machine_stopped_speaking', 'amd_stopped']);
    expect(events[2]).toMatchObject({ reason: 'human-after-screening', words: 1 });
  });

  test('with a longer message after it: the reason says that it is a machine', () => {
    expect(screened(question).at(-1)).toMatchObject({ reason: 'machine-after-screening' });
  });

  test('with a beep after it: a message can be left', () => {
    const events = screened(tone([1_000], 400, -12));

    expect(names(events).slice(1)).toEqual([
      'amd_machine_stopped_speaking',
      'amd_tone_detected',
      'amd_stopped',
    ]);
  });

  test('with no voice after it: stops at the limit for greetings', () => {
    expect(screened(silence(1_000)).at(-1)).toMatchObject({
      reason: 'nobody-after-screening',
      elapsedMs: 60_000,
    });
  });
});

describe('tones of an announcement (SIT)', () => {
  const tones = joined([tone([950], 330, -14), tone([1_400], 330, -14), tone([1_800], 330, -14)]);

  test('are a machine, and the end of its announcement is stated', () => {
    const detector = createDetector(defaultSettings);
    const samples = joined([silence(300), tones, question]);
    const events: AmdEvent[] = [];
    for (let at = 0; at < 30_000 * 8 && !detector.done; at += frameSamples) {
      const frame = new Int16Array(frameSamples);
      frame.set(samples.subarray(at, at + frameSamples));
      events.push(...detector.push(frame, false));
    }

    expect(names(events)).toEqual([
      'amd_machine_detected',
      'amd_machine_stopped_speaking',
      'amd_stopped',
    ]);
    expect(events[0]).toMatchObject({ reason: 'sit-tone' });
    expect(events[2]).toMatchObject({ reason: 'tone-timeout', elapsedMs: 20_000 });
  });
});
