// Scenes without a voice in front of the telephone: silent lines, and sounds that are neither
// person nor machine.

import type { Random } from '../../amd/made-up-audio.ts';
import type { Cast } from './cast.ts';
import { busyCadences, cadence, colours, noiseOf, ringbacks } from './made-sounds.ts';
import { between, excerpt, householdSound, pick, type Scene } from './scene.ts';
import { Timeline } from './timeline.ts';

function withoutVoice(
  label: 'silence' | 'other',
  name: string,
  timeline: Timeline,
  sources: readonly string[] = ['generated'],
): Scene {
  const expect = label === 'silence' ? ['no_speech'] : ['no tone'];
  return { label, class: name, expect, sources, isReal: false, timeline };
}

function silent(random: Random): Scene {
  const timeline = new Timeline().wait(8_000);
  const dbfs = between(random, -70, -45);
  timeline.behind(noiseOf(pick(random, colours), 8_000, dbfs, Math.floor(random() * 1e9)), 0, 0);
  return withoutVoice('silence', 'silence', timeline);
}

function homeAlone(random: Random, cast: Cast): Scene {
  const sound = householdSound(random, cast);
  const timeline = new Timeline().wait(between(random, 300, 2_500));
  timeline.sound(sound.samples, sound.db).wait(4_000);
  return withoutVoice('other', 'household alone', timeline, [sound.name]);
}

function music(random: Random, cast: Cast): Scene {
  const song = pick(random, cast.music);
  const timeline = new Timeline().sound(excerpt(random, song, 9_000), between(random, -10, 0));
  return withoutVoice('other', 'music', timeline, [song.name]);
}

function exchange(random: Random): Scene {
  const [hz, times] = pick(random, [...busyCadences, ...ringbacks]);
  const timeline = new Timeline()
    .wait(between(random, 50, 800))
    .sound(cadence(hz, times))
    .wait(1_000);
  return withoutVoice('other', 'exchange', timeline);
}

export const otherScenes: readonly (readonly [number, (random: Random, cast: Cast) => Scene])[] = [
  [22, silent],
  [36, homeAlone],
  [18, music],
  [18, exchange],
];
