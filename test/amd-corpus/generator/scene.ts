// Shared by all scenes: drawing from a cast, and saying lines.

import type { Random } from '../../amd/made-up-audio.ts';
import type { Label } from '../score/manifest.ts';
import type { Cast, Line, Sound, Voice } from './cast.ts';
import { applianceOf, beepOf } from './made-sounds.ts';
import type { Role } from './sentences.ts';
import { levelled, type Timeline } from './timeline.ts';

export type Scene = {
  readonly label: Label;
  /** The class of the scene, which has figures of its own. */
  readonly class: string;
  readonly expect: readonly string[];
  readonly sources: readonly string[];
  readonly isReal: boolean;
  readonly timeline: Timeline;
  readonly words?: number;
  readonly text?: string;
};

export function between(random: Random, low: number, high: number): number {
  return low + (high - low) * random();
}

export function pick<Item>(random: Random, items: readonly Item[]): Item {
  const item = items[Math.floor(random() * items.length)];
  if (item === undefined) throw new Error('the list to pick from is empty');
  return item;
}

/**
 * Draws a voice. If the cast has no voice for the role, it tries the next role. It draws the voice
 * before the line, so that a voice with more lines is not drawn more often.
 */
export function voiceFor(random: Random, cast: Cast, role: Role): Voice {
  return pick(
    random,
    cast.voices.filter(({ lines }) => (lines[role] ?? []).length > 0),
  );
}

export function lineOf(random: Random, voice: Voice, role: Role): Line {
  return pick(random, voice.lines[role] ?? []);
}

/** Plays a clip faster or slower by some per cent, with its pitch: almost another speaker. */
export function atSpeed(clip: Int16Array, speed: number): Int16Array {
  const length = Math.floor(clip.length / speed);
  return Int16Array.from({ length }, (_, index) => {
    const at = index * speed;
    const low = Math.floor(at);
    const share = at - low;
    return Math.round((clip[low] ?? 0) * (1 - share) + (clip[low + 1] ?? 0) * share);
  });
}

export function say(timeline: Timeline, line: Line, random: Random, speed: number, db = 0): void {
  line.clips.forEach((clip, index) => {
    if (index > 0) timeline.wait(between(random, 30, 160));
    timeline.say(atSpeed(clip, speed), db);
  });
}

export type Homely = { readonly name: string; readonly samples: Float64Array; readonly db: number };

/** Draws an appliance or a recorded household sound, some dB below the voice. */
export function householdSound(random: Random, cast: Cast): Homely {
  if (random() < 0.5 || cast.household.length === 0) {
    const model = pick(random, cast.appliances);
    const name = `appliance ${model.name} ${model.hz.join('+')} Hz`;
    return { name, samples: applianceOf(model, random), db: between(random, -6, 6) };
  }
  const sound = pick(random, cast.household);
  return { name: sound.name, samples: excerpt(random, sound, 4_000), db: between(random, -10, 0) };
}

export function excerpt(random: Random, { samples }: Sound, mostMs: number): Float64Array {
  const most = mostMs * 8;
  const room = Math.max(0, samples.length - most);
  const from = Math.floor(random() * Math.min(room, 8_000));
  return levelled(samples.subarray(from, from + most));
}

export function someBeep(
  random: Random,
  cast: Cast,
): { readonly samples: Float64Array; readonly name: string } {
  const model = pick(random, cast.beeps);
  const joint = { together: '+', 'in turn': '-', sweep: '-', decaying: '+', square: '+' }[
    model.way
  ];
  return { samples: beepOf(model, random), name: model.hz.join(joint) };
}

/** Adds a beep, sometimes two or three in a row. Detection must report the first. */
export function beepAfter(timeline: Timeline, random: Random, cast: Cast, gapMs: number): void {
  const { samples, name } = someBeep(random, cast);
  timeline.wait(gapMs).beep(samples, name);
  timeline.wait(between(random, 2_000, 3_500));
}
