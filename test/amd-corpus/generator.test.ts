// The generator of the corpus, with a synthetic voice. Its notes about an answer match its sound,
// the same seed gives the same answer, and no voice and no sound is in two parts.

import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { babble, seededRandom } from '../amd/made-up-audio.ts';
import type { Cast, Line } from './generator/cast.ts';
import { overTheLine } from './generator/line.ts';
import { machineScenes } from './generator/machines.ts';
import { otherScenes } from './generator/others.ts';
import { peopleScenes } from './generator/people.ts';
import { roles } from './generator/sentences.ts';
import { appliances, beepModels, recordedSounds } from './generator/sounds.ts';
import { Timeline } from './generator/timeline.ts';
import { parts, recordedVoices, syntheticVoices } from './generator/voices.ts';

function madeUpCast(): Cast {
  const line = (ms: number): Line => ({ clips: [babble(seededRandom(ms), ms)], words: 3 });
  const lines = Object.fromEntries(roles.map((role, index) => [role, [line(500 + 300 * index)]]));
  const song = { name: 'song', samples: babble(seededRandom(1), 5_000) };
  return {
    part: 'first',
    voices: [{ name: 'nobody', source: 'made up', isReal: false, lines }],
    household: [song],
    music: [song],
    appliances: appliances.filter(({ part }) => part === 'first'),
    beeps: beepModels.filter(({ part }) => part === 'first'),
  };
}

const cast = madeUpCast();
const makers = [...peopleScenes, ...machineScenes, ...otherScenes].map(([, make]) => make);

/** Level of a section of an answer in dB. */
function level(samples: Float64Array, fromMs: number, toMs: number): number {
  const part = samples.subarray(fromMs * 8, toMs * 8);
  const power = part.reduce((sum, sample) => sum + sample * sample, 0) / Math.max(1, part.length);
  return 10 * Math.log10(power + 1);
}

describe('every kind of answer', () => {
  test.each(makers.map((make, index) => [index, make] as const))(
    '%i has a manifest that matches its sound',
    (index, make) => {
      const scene = make(seededRandom(index), cast);
      const answer = scene.timeline.finish();

      const { greetingStartMs = 0, greetingEndMs = 0, beep } = answer;
      if (scene.label === 'human') expect(greetingEndMs).toBeGreaterThan(greetingStartMs);
      if (beep !== undefined) {
        expect(level(answer.samples, beep.startMs + 5, beep.endMs - 5)).toBeGreaterThan(30);
        expect(level(answer.samples, beep.endMs + 5, beep.endMs + 100)).toBeLessThan(1);
        expect(beep.startMs).toBeGreaterThanOrEqual(greetingEndMs);
      }
      expect(scene.expect.includes('tone')).toBe(beep !== undefined);
      expect(answer.samples.length).toBeLessThan(60_000 * 8);
    },
  );

  test('is the same from the same seed', () => {
    const whole = () => {
      const random = seededRandom(5);
      return makers
        .filter((_, index) => index % 8 === 0)
        .map((make) => overTheLine(make(random, cast).timeline.finish().samples, random))
        .map(({ samples, state }) => [createHash('sha256').update(samples).digest('hex'), state]);
    };

    expect(whole()).toEqual(whole());
  });
});

test('the greeting ends with its last word, before the sounds that follow from it', () => {
  const word = babble(seededRandom(3), 600);
  const timeline = new Timeline().wait(300).say(word).endGreeting().wait(900).say(word).wait(500);

  const { greetingStartMs, greetingEndMs, segments, samples } = timeline.finish();

  expect(segments.length).toBeGreaterThanOrEqual(2);
  expect(greetingStartMs).toBeGreaterThanOrEqual(300);
  expect(greetingEndMs).toBeLessThanOrEqual(900);
  expect(samples.length).toBe((300 + 600 + 900 + 600 + 500) * 8);
});

test('no voice, no recording and no device is in two parts', () => {
  const names = [
    ...syntheticVoices.map((voice) => [`${voice.engine} ${voice.voice}`, voice.part]),
    ...recordedVoices.map((voice) => [`${voice.package} ${voice.files.source}`, voice.part]),
    ...recordedSounds.map((sound) => [`${sound.package} ${sound.files.source}`, sound.part]),
    ...appliances.map((model) => [`${model.name} ${model.hz.join()}`, model.part]),
    ...beepModels.map((model) => [`${model.hz.join()} ${model.ms} ${model.way}`, model.part]),
  ] as const;

  expect(new Set(names.map(([name]) => name)).size).toBe(names.length);
  for (const part of parts)
    expect(names.filter(([, its]) => its === part).length).toBeGreaterThan(30);
});
