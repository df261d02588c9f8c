// Decides whether a tone is a beep. A beep is a pure tone with clear edges and a steady level, and
// its pitch is either steady or moves the way that machines move it. Voices and instruments can
// sound like that too, but only for a moment, so the more a tone resembles a voice, the longer and
// steadier we require it to be.

import type { ToneShape } from './tone-shape.ts';
import { isThirdHarmonic } from './tone-spectrum.ts';

export type Band = { readonly min: number; readonly max: number };

/** A tone, compared with the line before and after it. */
export type ToneAndLine = {
  readonly shape: ToneShape;
  readonly ms: number;
  /** Share of the tone's frames that were tonal. */
  readonly wholeness: number;
  /** How much louder the tone was than the line before it (`riseDb`) and after it (`dropDb`). */
  readonly riseDb: number;
  readonly dropDb: number;
  /** Level of the line before and after the tone, relative to the noise beneath the tone. */
  readonly beforeAboveBeneathDb: number;
  readonly afterAboveBeneathDb: number;
};

const beepHz: Band = { min: 345, max: 2_260 };
export const beepMs: Band = { min: 80, max: 2_500 };
/**
 * Below this share, the sound is speech or music that happens to contain tonal moments. A beep
 * remains above it even if one or two frames are lost.
 */
const minWholeness = 0.75;

/**
 * A level change this large counts as an edge. On a noisy line, we accept a smaller change if only
 * the noise beneath the tone remains.
 */
const edgeDb = 8;
const edgeInNoiseDb = 3;
const noiseChangeDb = 5;
const sameNoiseDb = 6;
const steadyInNoise = 0.75;
/**
 * Maximum share of a beep's power that isn't sinusoidal and disappears together with the beep.
 * Codecs and clipping add a little of that power, but voices and strings contain more.
 */
const maxImpurity = 0.06;
/**
 * The same limit for a tone whose pitch and level don't move at all, because then any impurity must
 * have been added by a codec or by noise.
 */
const maxImpurityUnmoved = 0.1;
const unmovedMs = 200;
/** Share of a square wave's power in its fifth and higher harmonics. */
const squareRest = 0.08;
const octaveShare = 0.04;

/** Voices are pitched below this. */
const maxVoiceHz = 640;
const lowWanderHz = 1.2;
/**
 * The measuring error that a codec may cause. Even when a voice sustains a note, its pitch wavers
 * by at least half a per cent.
 */
const lowWanderShare = 0.005;
const maxLowWander = { ms: 700, hz: 3 } as const;
const wanderInNoiseHz = 12;
/**
 * Minimum length of a low beep in ms. It depends on whether the beep stands alone or is adjacent to
 * other sound, and on whether it consists of one sine or two. Note that vowels and chords contain
 * several sines.
 */
const lowMs = {
  plain: 140,
  alone: { one: 180, two: 280 },
  attached: { plain: 200, one: 280, two: 400 },
} as const;
const plainWanderHz = 0.7;
const plainImpurity = 0.002;
const plainEdgeDb = 15;
const pureImpurity = 0.005;
const minPureStepMs = 100;
const minLowSweepMs = 250;
const exactLowSweep = 0.004;
const minLowRange = 0.08;
const longLowMs = 400;
/**
 * If a low tone is this much louder than the line before and after it, we allow for what a codec
 * does to a short beep's level and pitch. Voices that start and end so abruptly don't stay on one
 * pitch.
 */
const outstanding = { db: 24, ms: 160, onPitch: 0.85, levelSteady: 0.5, wanderHz: 4 } as const;
/**
 * A chirp over at least half of its median pitch. We compare its error with its range, because a
 * frame that a codec has blurred is further off in a fast sweep than in a slow one.
 */
const longSweep = { range: 0.5, error: 0.015, levelSteady: 0.75 } as const;
const lowDropDb = 6;

const minPairMs = 100;
const minMovingMs = 140;
const exactMs = 200;
const exactSweep = 0.006;
/** Minimum length of a high beep that sounds during speech or immediately after it. */
const attachedMs = { still: 120, moving: 240 } as const;
/** A semitone. A voice wavers by less than that. */
const minStepRatio = 1.06;
/** Any longer tone is probably a musical note. */
const maxStepMs = 600;
/** Time between two turns of a slow 3 Hz warble. */
const minTurnMs = 170;

export function isBeep(tone: ToneAndLine): boolean {
  const { shape, ms } = tone;
  if (tone.wholeness < minWholeness) return false;
  if (!within(shape.hz, beepHz) || !within(ms, beepMs)) return false;
  if ((shape.secondHz ?? beepHz.min) < beepHz.min) return false;
  if (!isEdge(tone.dropDb, tone.afterAboveBeneathDb) || !isSameNoise(tone)) return false;
  if (impurityOf(tone) > (isUnmoved(tone) ? maxImpurityUnmoved : maxImpurity)) return false;
  if (isLongSweep(tone)) return true;
  return isVoiceLike(shape) ? isLowBeep(tone) : isHighBeep(tone);
}

function isUnmoved(tone: ToneAndLine): boolean {
  const { shape, ms } = tone;
  return ms >= unmovedMs && shape.onPitch === 1 && shape.levelSteady >= 0.95 && comesAlone(tone);
}

export function within(value: number, band: Band): boolean {
  return value >= band.min && value <= band.max;
}

function isHighBeep(tone: ToneAndLine): boolean {
  const { shape, ms } = tone;
  if (isOnPitch(shape, 0.75)) {
    return isStill(tone) && (comesAlone(tone) || ms >= attachedMs.still);
  }
  if (ms < minMovingMs || !movesAsMachinesDo(tone)) return false;
  if (shape.levelSteady < (movesExactly(tone) ? 0.6 : 0.85)) return false;
  return comesAlone(tone) || (ms >= attachedMs.moving && impurityOf(tone) <= maxImpurity / 2);
}

function isStill({ shape, ms }: ToneAndLine): boolean {
  // Codecs may change a single high tone's level, but not its pitch.
  if (shape.secondHz === undefined) return shape.levelSteady >= 0.4;
  return shape.levelSteady >= 0.7 && ms >= minPairMs;
}

/**
 * The pitch moves in one straight line, or from one pitch to another. As with a steady tone, a
 * codec may change the level.
 */
function movesExactly({ shape, ms }: ToneAndLine): boolean {
  if (ms < exactMs) return false;
  return shape.sweepErrorHz <= shape.hz * exactSweep || (isStepped(shape) && shape.resting >= 0.95);
}

function movesAsMachinesDo({ shape, ms }: ToneAndLine): boolean {
  // Machines sweep a single sine. If we can also hear its octave, the tone comes from a throat or a
  // string.
  if (hasOctave(shape)) return false;
  return isSweep(shape) || isStepped(shape) || isWarble(shape, ms);
}

function isLowBeep(tone: ToneAndLine): boolean {
  const { shape, ms, dropDb } = tone;
  if (standsOut(tone) && isSteadyEnough(tone)) return true;
  if (dropDb < lowDropDb || shape.levelSteady < (ms >= longLowMs ? 0.7 : 0.8)) return false;
  if (isPure(tone) && movesExactlyLow(tone)) return true;
  if (!isOnSteadyPitch(tone) && !isLongStepped(shape)) return false;
  return ms >= minLowMs(tone);
}

function standsOut({ riseDb, dropDb }: ToneAndLine): boolean {
  return Math.min(riseDb, dropDb) >= outstanding.db;
}

/** Applies to low tones that stand out. */
function isSteadyEnough({ shape, ms }: ToneAndLine): boolean {
  if (shape.secondHz !== undefined || ms < outstanding.ms) return false;
  if (shape.onPitch < outstanding.onPitch) return false;
  return shape.levelSteady >= outstanding.levelSteady && shape.wanderHz <= outstanding.wanderHz;
}

function isLongSweep(tone: ToneAndLine): boolean {
  const { hz, rangeHz, secondHz, sweepErrorHz, levelSteady } = tone.shape;
  if (secondHz !== undefined || tone.ms < exactMs || !standsOut(tone)) return false;
  if (rangeHz < hz * longSweep.range || levelSteady < longSweep.levelSteady) return false;
  return sweepErrorHz <= rangeHz * longSweep.error;
}

function minLowMs(tone: ToneAndLine): number {
  const { shape, riseDb } = tone;
  const { plain, alone, attached } = lowMs;
  const isAlone = comesAlone(tone);
  const isPlain = isVeryPlain(tone);
  if (shape.secondHz !== undefined && !isSquare(shape)) {
    if (!isAlone) return attached.two;
    return isPlain && isPure(tone) ? alone.one : alone.two;
  }
  if (!isAlone) return isPlain ? attached.plain : attached.one;
  return isPlain && riseDb >= plainEdgeDb ? plain : alone.one;
}

/** A single sine whose pitch and level are constant. Even sung vowels aren't that plain. */
function isVeryPlain(tone: ToneAndLine): boolean {
  const { shape } = tone;
  if (shape.onPitch < 1 || shape.levelSteady < 1 || shape.wanderHz > plainWanderHz) return false;
  return impurityOf(tone) <= plainImpurity && tone.dropDb >= plainEdgeDb;
}

/** The tone consists of nothing but sines, and it starts and ends abruptly. */
function isPure(tone: ToneAndLine): boolean {
  return impurityOf(tone) <= pureImpurity && Math.min(tone.riseDb, tone.dropDb) >= plainEdgeDb;
}

/**
 * A low tone that moves as only machines can move it. Voices glide and jump too, but not in a
 * straight line, not between two steady pitches, and not as a single sine.
 */
function movesExactlyLow({ shape, ms }: ToneAndLine): boolean {
  if (hasOctave(shape)) return false;
  if (isStepped(shape) && shape.resting >= 0.85) {
    return shape.steps.every((step) => step.ms >= minPureStepMs);
  }
  const isExact = shape.sweepErrorHz <= shape.hz * exactLowSweep && shape.levelSteady >= 0.95;
  return isExact && ms >= minLowSweepMs && shape.rangeHz >= shape.hz * minLowRange;
}

function isOnSteadyPitch({ shape, ms }: ToneAndLine): boolean {
  return isOnPitch(shape, 0.85) && shape.wanderHz <= allowedWanderHz(shape, ms);
}

/**
 * We can measure a machine's sine to within a hertz, unless a codec or noise blurs it. The blur
 * that noise causes is proportional to the noise's share of the power.
 */
function allowedWanderHz({ hz, db, beneathDb }: ToneShape, ms: number): number {
  if (ms >= maxLowWander.ms) return maxLowWander.hz;
  const noise = 10 ** ((beneathDb - db) / 10);
  const least = Math.max(lowWanderHz, lowWanderShare * hz);
  return Math.min(maxLowWander.hz, least + wanderInNoiseHz * noise);
}

function comesAlone({ riseDb, beforeAboveBeneathDb }: ToneAndLine): boolean {
  return isEdge(riseDb, beforeAboveBeneathDb);
}

function isEdge(stepDb: number, aboveBeneathDb: number): boolean {
  return stepDb >= edgeDb || (stepDb >= edgeInNoiseDb && aboveBeneathDb <= noiseChangeDb);
}

/**
 * Returns true if the noise is the same before and after the tone. This check is only needed for
 * tones that are barely louder than the noise. Noise that starts together with the tone, or
 * continues after it, is music.
 */
function isSameNoise({ shape, riseDb, dropDb }: ToneAndLine): boolean {
  if (dropDb >= edgeDb) return true;
  return Math.abs(riseDb - dropDb) <= sameNoiseDb && shape.levelSteady >= steadyInNoise;
}

/**
 * Returns the share of the tone's power that isn't sinusoidal, less the line's noise. We can tell
 * the two apart because line noise continues after the tone, whereas the other partials of a voice
 * or an instrument disappear with it.
 */
function impurityOf({ shape, dropDb }: ToneAndLine): number {
  const impurity = 10 ** ((shape.beneathDb - shape.db) / 10) - 10 ** (-dropDb / 10);
  return isSquare(shape) ? impurity - squareRest : impurity;
}

/** A clipped tone or a square wave. Unlike voices, both contain odd harmonics only. */
function isSquare({ hz, secondHz = 0 }: ToneShape): boolean {
  return isThirdHarmonic(hz, secondHz);
}

export function hasOctave({ hz, secondHz }: ToneShape): boolean {
  if (secondHz === undefined) return false;
  return Math.abs(Math.max(hz, secondHz) / Math.min(hz, secondHz) - 2) <= octaveShare;
}

/**
 * Returns true if the tone is so low that it could be a voice's pitch or one of its first two
 * harmonics.
 */
function isVoiceLike({ hz, secondHz = hz }: ToneShape): boolean {
  return Math.min(hz, secondHz) <= maxVoiceHz;
}

function isOnPitch(shape: ToneShape, needed: number): boolean {
  if (shape.onPitch < needed) return false;
  return shape.secondHz === undefined || shape.secondOnPitch >= needed;
}

/** A sweep over at least a semitone. High voices waver by less than that. */
function isSweep(shape: ToneShape): boolean {
  if (shape.rangeHz < shape.hz * (minStepRatio - 1)) return false;
  return shape.sweepErrorHz <= Math.max(8, shape.hz * 0.008);
}

function isStepped(shape: ToneShape): boolean {
  const [first, second] = shape.steps;
  if (first === undefined || second === undefined || shape.steps.length > 2) return false;
  const ratio = Math.max(first.hz, second.hz) / Math.min(first.hz, second.hz);
  if (Math.max(first.ms, second.ms) > maxStepMs) return false;
  return ratio >= minStepRatio && shape.resting >= 0.75;
}

/**
 * Two long, steady pitches. Voices can jump as well, but they don't stay at one pitch before and
 * after the jump.
 */
function isLongStepped(shape: ToneShape): boolean {
  return isStepped(shape) && shape.steps.every(({ ms }) => ms >= lowMs.alone.one);
}

/** The pitch swings around one value, faster than anyone could whistle it. */
function isWarble(shape: ToneShape, ms: number): boolean {
  return shape.rangeHz <= shape.hz * 0.15 && shape.turns >= Math.max(1, ms / minTurnMs - 1);
}
