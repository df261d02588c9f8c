// Properties that hold for any audio, lost or late frames, and any end of the call: the order of
// the events, the timers, and the same events for the same audio however its frames arrive.

import { describe, expect, test } from 'vitest';
import { createDetector } from '../../src/amd/detector.ts';
import { frameSamples } from '../../src/amd/frame.ts';
import type { AmdSettings } from '../../src/calls/call-types.ts';
import type { AmdEvent } from '../../src/calls/detection/amd-event.ts';
import { createSounds } from '../../src/embedded/sandbox/sounds.ts';
import { joined, silence, tone } from '../../src/embedded/sandbox/tones.ts';
import { grammarFault } from './grammar-check.ts';
import { defaultSettings, listen } from './listen.ts';
import { anything, noise, type Random, seededRandom } from './made-up-audio.ts';
import { timerFault } from './timers.ts';

const sounds = createSounds();
const recordings = [sounds.hello, sounds.name, sounds.voicemail, sounds.announcement, sounds.fax];
/** Longer than any timer. */
const wholeCallFrames = 3_100;

function someSettings(random: Random): AmdSettings {
  const upTo = (ms: number) => Math.round(random() * ms);
  return {
    timers: {
      noSpeechTimeoutMs: upTo(8_000),
      decisionTimeoutMs: upTo(20_000),
      toneTimeoutMs: upTo(30_000),
      greetingCompletionTimeoutMs: upTo(4_000),
    },
    ...(random() < 0.7 ? {} : { thresholdWordCount: 1 + Math.floor(random() * 12) }),
  };
}

/** Makes speech, pauses, beeps and noise in random order. */
function someCall(random: Random): Int16Array {
  if (random() < 0.4) return anything(random, 30_000);
  const parts: Int16Array[] = [];
  for (let count = Math.floor(random() * 6); count >= 0; count -= 1) {
    const recording = recordings[Math.floor(random() * recordings.length)] ?? sounds.hello;
    parts.push(recording.samples, silence(random() * 3_000));
    if (random() < 0.3) parts.push(tone([400 + random() * 1_600], 100 + random() * 900, -15));
    if (random() < 0.2) parts.push(noise(random, random() * 3_000, 3_000 * random()));
  }
  return joined(parts);
}

type Frame = { readonly samples: Int16Array; readonly lost: boolean };

/**
 * Cuts samples into frames. Some are lost and some are swapped with their neighbours, as in a
 * network without a jitter buffer.
 */
function framesOf(random: Random, samples: Int16Array): Frame[] {
  const lossShare = random() < 0.5 ? 0 : random() ** 2;
  const swapShare = random() < 0.5 ? 0 : 0.05;
  const frames = Array.from({ length: wholeCallFrames }, (_, index) => {
    const frame = new Int16Array(frameSamples);
    frame.set(samples.subarray(index * frameSamples, (index + 1) * frameSamples));
    return { samples: frame, lost: random() < lossShare };
  });
  for (let index = 1; index < frames.length; index += 1) {
    const [before, after] = [frames[index - 1], frames[index]];
    if (before === undefined || after === undefined || random() >= swapShare) continue;
    frames[index - 1] = after;
    frames[index] = before;
  }
  return frames;
}

function run(settings: AmdSettings, frames: readonly Frame[]): AmdEvent[] {
  const detector = createDetector(settings);
  const events = frames.flatMap(({ samples, lost }) => [...detector.push(samples, lost)]);
  return [...events, ...detector.stop('call-ended')];
}

describe('any call', () => {
  test('has its events in order and exceeds no timer by more than a frame', () => {
    const reasons = new Set<string>();
    for (let seed = 1; seed <= 120; seed += 1) {
      const random = seededRandom(seed);
      const settings = random() < 0.3 ? defaultSettings : someSettings(random);
      const events = run(settings, framesOf(random, someCall(random)));

      expect(grammarFault(events), `seed ${seed}`).toBeUndefined();
      expect(timerFault(events, settings.timers), `seed ${seed}`).toBeUndefined();
      for (const { reason } of events) reasons.add(reason);
    }

    // The calls reached all these reasons, so the properties were really tested.
    for (const reason of ['short-greeting', 'dense-speech', 'silence', 'tone', 'tone-timeout']) {
      expect(reasons).toContain(reason);
    }
  });

  test('stops detection at its end, whenever that is', () => {
    for (let seed = 1; seed <= 20; seed += 1) {
      const random = seededRandom(1_000 + seed);
      const frames = framesOf(random, someCall(random));
      const whole = run(defaultSettings, frames);
      const endFrame = Math.floor(random() * 600);
      const cut = run(defaultSettings, frames.slice(0, endFrame));

      const before = whole.filter(({ elapsedMs }) => elapsedMs <= endFrame * 20);
      if (before.at(-1)?.event === 'amd_stopped') expect(cut).toEqual(before);
      else expect(cut).toMatchObject([...before, { event: 'amd_stopped', reason: 'call-ended' }]);
    }
  });
});

describe('the same audio', () => {
  test('gives the same events in one reused buffer as in separate frames, with other calls beside it', () => {
    const random = seededRandom(7);
    const calls = Array.from({ length: 6 }, () => framesOf(random, someCall(random)));
    const alone = calls.map((frames) => run(defaultSettings, frames));

    const buffer = new Int16Array(frameSamples);
    const detectors = calls.map(() => createDetector(defaultSettings));
    const together = calls.map((): AmdEvent[] => []);
    for (let index = 0; index < wholeCallFrames; index += 1) {
      for (const [call, detector] of detectors.entries()) {
        const frame = calls[call]?.[index];
        if (frame === undefined) continue;
        buffer.set(frame.samples);
        together[call]?.push(...detector.push(buffer, frame.lost));
        buffer.fill(12_345);
      }
    }

    expect(together).toEqual(alone);
  });

  test.each([
    ['greeting', sounds.voicemail.samples, 'amd_machine_detected'],
    ['hello', sounds.hello.samples, 'amd_human_detected'],
  ])('lost in part is still a %s', (_, samples, verdict) => {
    for (const share of [0.01, 0.03, 0.05]) {
      const random = seededRandom(share * 1_000);
      const detector = createDetector(defaultSettings);
      const events: AmdEvent[] = [];
      for (let at = 0; at < 20_000 * 8 && !detector.done; at += frameSamples) {
        const frame = new Int16Array(frameSamples);
        frame.set(samples.subarray(at, at + frameSamples));
        events.push(...detector.push(frame, random() < share));
      }
      expect(events[0]?.event, `${share}`).toBe(verdict);
    }
  });

  test.each([-18, -12, -6, 6])('gives the same verdict %d dB louder', (db) => {
    const louder = (samples: Int16Array) =>
      samples.map((sample) =>
        Math.max(-32_768, Math.min(32_767, Math.round(sample * 10 ** (db / 20)))),
      );
    expect(listen(louder(sounds.hello.samples))[0]?.event).toBe('amd_human_detected');
    expect(listen(louder(sounds.announcement.samples))[0]?.event).toBe('amd_machine_detected');
  });
});
