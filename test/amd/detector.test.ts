// What the detector states about audio whose truth is known, with timers and evidence.

import { describe, expect, test } from 'vitest';
import { createDetector } from '../../src/amd/detector.ts';
import { frameSamples } from '../../src/amd/frame.ts';
import type { AmdEvent } from '../../src/calls/detection/amd-event.ts';
import { createSounds } from '../../src/embedded/sandbox/sounds.ts';
import { joined, silence, tone } from '../../src/embedded/sandbox/tones.ts';
import { defaultSettings, listen, names } from './listen.ts';
import { noise, seededRandom } from './made-up-audio.ts';
import { cadence, moving } from './tone-sounds.ts';

const sounds = createSounds();
const hello = sounds.hello.samples;
const announcement = sounds.announcement.samples;
const beep = tone([1_000], 400, -9);
const chime = (hz: number) =>
  moving(
    () => hz,
    600,
    -10,
    (wave, part) => wave * 10 ** -part,
  );

describe('a person', () => {
  test('answers briefly and waits', () => {
    const events = listen(hello);

    expect(names(events)).toEqual(['amd_human_detected', 'amd_stopped']);
    expect(events[0]).toMatchObject({ reason: 'short-greeting', words: 1 });
    expect(events[1]).toMatchObject({ reason: 'human' });
    expect((events[1]?.elapsedMs ?? 0) - (events[0]?.elapsedMs ?? 0)).toBe(5_000);
  });

  test('turns into a machine at a beep within five seconds', () => {
    const events = listen(joined([hello, silence(4_500), beep]));

    expect(names(events)).toEqual(['amd_human_detected', 'amd_tone_detected', 'amd_stopped']);
    expect(events[1]).toMatchObject({ corrects: 'amd_human_detected', tone: { hz: 1_000 } });
    expect(events[2]).toMatchObject({ reason: 'tone' });
  });

  test('may say hello again without prolonging detection', () => {
    const events = listen(joined([hello, silence(1_200), hello]));

    expect(names(events)).toEqual(['amd_human_detected', 'amd_stopped']);
    expect((events[1]?.elapsedMs ?? 0) - (events[0]?.elapsedMs ?? 0)).toBe(5_000);
  });

  test.each([
    ['a microwave', () => cadence([1_480], 600, 700, 3)],
    ['a buzzer', () => tone([2_050], 500, -20)],
    ['a doorbell', () => joined([chime(659), chime(523)])],
    ['a busy tone', () => cadence([425], 500, 500, 4)],
    ['reorder', () => cadence([480, 620], 250, 250, 8)],
  ])('stays a person if %s sounds after the hello', (_, sound) => {
    for (const gapMs of [300, 1_200, 3_000]) {
      const events = listen(joined([hello, silence(gapMs), sound(), silence(2_000)]));

      expect(names(events)).toEqual(['amd_human_detected', 'amd_stopped']);
    }
  });

  test('may answer as late as the no-speech time-out allows', () => {
    expect(names(listen(joined([silence(4_000), hello])))).toEqual([
      'amd_human_detected',
      'amd_stopped',
    ]);
  });
});

describe('a machine', () => {
  test('talks on and stops; detection ends at the tone time-out', () => {
    const events = listen(announcement);

    expect(names(events)).toEqual([
      'amd_machine_detected',
      'amd_machine_stopped_speaking',
      'amd_stopped',
    ]);
    expect(events[0]).toMatchObject({ reason: 'dense-speech' });
    expect(events[1]).toMatchObject({ reason: 'silence' });
    expect(events[1]?.pauseMs).toBe(2_000);
    expect(events[2]).toMatchObject({ reason: 'tone-timeout', elapsedMs: 20_000 });
  });

  test('ends its greeting with a beep', () => {
    const events = listen(joined([announcement, silence(300), beep]));

    expect(names(events)).toEqual([
      'amd_machine_detected',
      'amd_machine_stopped_speaking',
      'amd_tone_detected',
      'amd_stopped',
    ]);
    expect(events[1]).toMatchObject({ reason: 'tone' });
    expect(events[2]).toMatchObject({ tone: { hz: 1_000 }, elapsedMs: events[1]?.elapsedMs });
  });

  test('is stated to stop and beep although it sends no packets after its beep', () => {
    const detector = createDetector(defaultSettings);
    const heard = framesOf(joined([announcement, silence(400), beep]));
    const events = heard.flatMap((frame) => [...detector.push(frame, false)]);
    for (let frames = 0; frames < 20; frames += 1) {
      events.push(...detector.push(new Int16Array(frameSamples), true));
    }

    expect(names(events)).toEqual([
      'amd_machine_detected',
      'amd_machine_stopped_speaking',
      'amd_tone_detected',
      'amd_stopped',
    ]);
  });

  test('beeps long after its greeting', () => {
    const events = listen(joined([announcement, silence(6_000), beep]));

    expect(names(events)).toEqual([
      'amd_machine_detected',
      'amd_machine_stopped_speaking',
      'amd_tone_detected',
      'amd_stopped',
    ]);
    expect(events[1]).toMatchObject({ reason: 'silence' });
  });

  test('is detected by a beep before any word, without a greeting', () => {
    expect(names(listen(joined([silence(1_000), beep])))).toEqual([
      'amd_machine_detected',
      'amd_tone_detected',
      'amd_stopped',
    ]);
  });

  test('has no beep stated after the tone time-out', () => {
    const timers = { ...defaultSettings.timers, toneTimeoutMs: 8_000 };
    const events = listen(joined([announcement, announcement, beep]), { timers });

    expect(names(events)).toEqual([
      'amd_machine_detected',
      'amd_machine_stopped_speaking',
      'amd_stopped',
    ]);
    expect(events[2]).toMatchObject({ reason: 'tone-timeout' });
  });

  test('that never stops speaking is given up after 60 s', () => {
    const events = listen(joined(Array.from({ length: 16 }, () => announcement)));

    expect(names(events)).toEqual(['amd_machine_detected', 'amd_stopped']);
    expect(events[1]).toMatchObject({ reason: 'greeting-timeout', elapsedMs: 60_000 });
  });
});

describe('a recording that says hello and waits before it goes on', () => {
  const goesOn = [hello, silence(1_500), announcement];
  const delayMs = (events: readonly AmdEvent[]) =>
    (events.at(-1)?.elapsedMs ?? 0) - (events[0]?.elapsedMs ?? 0);

  test('turns into a machine at its beep, however late the beep comes', () => {
    const events = listen(joined([...goesOn, silence(1_000), beep]));

    expect(names(events)).toEqual(['amd_human_detected', 'amd_tone_detected', 'amd_stopped']);
    expect(events[1]).toMatchObject({ corrects: 'amd_human_detected', tone: { hz: 1_000 } });
    expect(delayMs(events)).toBeGreaterThan(5_000);
  });

  test('is given up three and a half seconds after its last word', () => {
    const events = listen(joined(goesOn));
    const spokenMs = joined(goesOn).length / 8;
    // The end of a word is located to within a few frames.
    const errorMs = 200;

    expect(names(events)).toEqual(['amd_human_detected', 'amd_stopped']);
    expect(events[1]).toMatchObject({ reason: 'human' });
    expect(events[1]?.elapsedMs).toBeGreaterThan(spokenMs + 3_500 - errorMs);
    expect(events[1]?.elapsedMs).toBeLessThan(spokenMs + 3_500 + errorMs);
  });

  test('is given up at the tone time-out', () => {
    const endless = joined([...goesOn, ...Array.from({ length: 5 }, () => announcement), beep]);
    const events = listen(endless);

    expect(names(events)).toEqual(['amd_human_detected', 'amd_stopped']);
    expect(events[1]).toMatchObject({ reason: 'human', elapsedMs: 20_000 });
    const timers = { ...defaultSettings.timers, toneTimeoutMs: 1_000 };
    expect(delayMs(listen(endless, { timers }))).toBe(5_000);
  });
});

describe('word threshold', () => {
  test('is a strict rule: at 1, a person who says one word is a machine', () => {
    const events = listen(hello, { ...defaultSettings, thresholdWordCount: 1 });

    expect(events[0]).toMatchObject({ event: 'amd_machine_detected', reason: 'word-count' });
  });

  test('makes a long greeting of fewer words a person', () => {
    const events = listen(announcement, { ...defaultSettings, thresholdWordCount: 100 });

    expect(events[0]).toMatchObject({ event: 'amd_human_detected', reason: 'word-count' });
  });
});

describe('no voice', () => {
  test.each([
    ['digital silence', silence(0)],
    ['line noise', noise(seededRandom(1), 10_000, 60)],
    ['ringback', joined([tone([440, 480], 2_000, -19), silence(4_000)])],
    [
      'busy tone',
      joined(Array.from({ length: 8 }, () => joined([tone([480, 620], 500, -24), silence(500)]))),
    ],
    ['dial tone', tone([350, 440], 8_000, -19)],
    ['European ringback', joined([silence(500), tone([425], 1_000, -15), silence(4_000)])],
  ])('%s is not speech', (_, samples) => {
    const events = listen(samples);

    expect(names(events)).toEqual(['amd_no_speech_detected', 'amd_stopped']);
    expect(events[0]?.elapsedMs).toBe(5_000);
  });

  test('the no-speech time-out counts from the answer', () => {
    const timers = { ...defaultSettings.timers, noSpeechTimeoutMs: 1_240 };

    expect(listen(silence(0), { timers })[0]?.elapsedMs).toBe(1_240);
  });

  test('a speaker who is neither brief nor done runs into the decision time-out', () => {
    const timers = { ...defaultSettings.timers, decisionTimeoutMs: 1_500 };
    const events = listen(announcement, { timers });

    expect(names(events)).toEqual(['amd_decision_timeout', 'amd_stopped']);
    expect(events[0]).toMatchObject({ elapsedMs: 1_500, reason: 'undecided' });
  });
});

describe('fax', () => {
  test.each([
    ['answering (CED)', joined([silence(500), tone([2_100], 3_000, -10)])],
    ['calling (CNG)', joined([silence(500), tone([1_100], 500, -10), silence(3_000)])],
  ])('%s is a machine without a beep', (_, samples) => {
    const events = listen(samples);

    expect(names(events)).toEqual(['amd_machine_detected', 'amd_stopped']);
    expect(events[0]).toMatchObject({ reason: 'fax-tone' });
  });
});

describe('the end of the call', () => {
  test('is stated once with its reason, whatever is known by then', () => {
    const detector = createDetector(defaultSettings);
    detector.push(new Int16Array(frameSamples), false);

    expect(detector.stop('call-ended')).toEqual([
      { event: 'amd_stopped', reason: 'call-ended', elapsedMs: 20 },
    ]);
    expect(detector.done).toBe(true);
    expect(detector.stop('call-ended')).toEqual([]);
    expect(detector.push(new Int16Array(frameSamples), false)).toEqual([]);
  });

  test('lost frames count as time and add no sound', () => {
    const detector = createDetector(defaultSettings);
    const loud = new Int16Array(frameSamples).fill(20_000);
    const events = Array.from({ length: 300 }, () => detector.push(loud, true)).flat();

    expect(names(events)).toEqual(['amd_no_speech_detected', 'amd_stopped']);
  });
});

function framesOf(samples: Int16Array): Int16Array[] {
  return Array.from({ length: Math.floor(samples.length / frameSamples) }, (_, index) =>
    samples.slice(index * frameSamples, (index + 1) * frameSamples),
  );
}
