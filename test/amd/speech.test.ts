// Distinguishes speech into the telephone from sounds that are only on the line.

import { describe, expect, test } from 'vitest';
import { createSounds } from '../../src/embedded/sandbox/sounds.ts';
import { joined, silence, tone } from '../../src/embedded/sandbox/tones.ts';
import { listen, names } from './listen.ts';
import { noise, type Random, seededRandom } from './made-up-audio.ts';

const sounds = createSounds();
const hello = sounds.hello.samples;
const announcement = sounds.announcement.samples;

/** Noise that falls off with frequency, as in a car or a hall. */
function rumble(random: Random, ms: number, level: number): Int16Array {
  let low = 0;
  return noise(random, ms, 20_000).map((sample) => {
    low += 0.08 * (sample - low);
    return Math.round((low * level) / 2_000);
  });
}

/** Keyboard clicks of 10 ms, five a second. */
function typing(random: Random, ms: number, level: number): Int16Array {
  return Int16Array.from({ length: ms * 8 }, (_, index) => {
    const since = index % 1_600;
    return since < 80 ? Math.round((random() * 2 - 1) * level * (1 - since / 80)) : 0;
  });
}

function hum(ms: number): Int16Array {
  return Int16Array.from({ length: ms * 8 }, (_, index) => {
    const phase = (2 * Math.PI * index) / 8_000;
    return Math.round(90 * Math.sin(50 * phase) + 60 * Math.sin(150 * phase));
  });
}

function mixed(one: Int16Array, other: Int16Array): Int16Array {
  const length = Math.max(one.length, other.length);
  return Int16Array.from({ length }, (_, index) => {
    const sum = (one[index] ?? 0) + (other[index] ?? 0);
    return Math.max(-32_768, Math.min(32_767, sum));
  });
}

describe('sound without speech', () => {
  test.each([
    ['white noise', noise(seededRandom(1), 8_000, 200)],
    ['a car', rumble(seededRandom(2), 8_000, 900)],
    ['typing', typing(seededRandom(3), 8_000, 9_000)],
    ['hum', hum(8_000)],
    ['noise that begins late', joined([silence(1_500), noise(seededRandom(4), 6_000, 300)])],
    [
      'a dialled number',
      joined(['697', '770', '852'].map((low) => tone([Number(low), 1_336], 90, -12))),
    ],
  ])('ends in the no-speech time-out: %s', (_, samples) => {
    expect(names(listen(samples))).toEqual(['amd_no_speech_detected', 'amd_stopped']);
  });
});

describe('speech', () => {
  test.each([
    ['white noise', noise(seededRandom(5), 8_000, 500)],
    ['a car', rumble(seededRandom(6), 8_000, 900)],
    ['typing', typing(seededRandom(7), 8_000, 3_000)],
    ['hum', hum(8_000)],
  ])('ends although %s goes on', (_, background) => {
    const [first] = listen(mixed(hello, background));

    expect(first).toMatchObject({ event: 'amd_human_detected', reason: 'short-greeting' });
    expect(first?.elapsedMs).toBeLessThan(hello.length / 8 + 1_200);
  });

  test('in the background does not prolong the voice in front', () => {
    const behind = joined([silence(1_000), announcement]).map((sample) => Math.round(sample / 5));
    const [first] = listen(mixed(hello, behind));

    expect(first).toMatchObject({ event: 'amd_human_detected', reason: 'short-greeting' });
  });

  test('is heard down to -38 dBFS', () => {
    const quiet = announcement.map((sample) => Math.round(sample / 12));

    expect(listen(quiet)[0]?.speechMs).toBeGreaterThan(3_000);
  });

  test.each([
    ['a slow busy tone', [425], 480, -15],
    ['a fast busy tone', [425], 240, -15],
    ['a buzzer with its octave', [880, 1_760], 500, -15],
  ])('does not include the edges of a tone in noise: %s', (_, hz, ms, dbfs) => {
    const cadence = Array.from({ length: 8 }, () => [tone(hz, ms, dbfs), silence(ms)]).flat();
    const line = joined([hello, silence(550), ...cadence]);
    const events = listen(mixed(line, noise(seededRandom(3), line.length / 8, 200)));

    expect(names(events)).toEqual(['amd_human_detected', 'amd_stopped']);
  });

  test('has roughly the right number of words', () => {
    // "The person you are calling is not available at the moment. Please try again later."
    const machine = listen(announcement).find(({ event }) => event.includes('stopped_speaking'));

    expect(machine?.words).toBeGreaterThanOrEqual(8);
    expect(machine?.words).toBeLessThanOrEqual(15);
  });
});
