// Is it a beep? It is pure, keeps its pitch or moves it as machines do, keeps its level, and stands alone. What voices and
// instruments do by chance for a moment, a beep does for longer: the likelier a voice is, the longer and the steadier.

import type { ToneShape } from './tone-shape.ts';
import { isThirdHarmonic } from './tone-spectrum.ts';

export type Band = { readonly min: number; readonly max: number };

/** A tone with the line around it. */
export type ToneAndLine = {
  readonly shape: ToneShape;
  readonly ms: number;
  /** Part of its frames that were tone. */
  readonly wholeness: number;
  /** How much louder it was than the line before it, and than the line after it. */
  readonly riseDb: number;
  readonly dropDb: number;
  /** The line before and after it, against what lay beneath the tone. */
  readonly beforeAboveBeneathDb: number;
  readonly afterAboveBeneathDb: number;
};

const beepHz: Band = { min: 345, max: 2_260 };
export const beepMs: Band = { min: 80, max: 2_500 };
/** Less of it: speech or music with tonal moments, and more than a lost frame or two. */
const leastWholeness = 0.75;

/** A step of level this high is an edge; a lower one, where noise lies beneath the tone and is all that remains. */
const edgeDb = 8;
const edgeInNoiseDb = 3;
const noiseChangeDb = 5;
const sameNoiseDb = 6;
const steadyInNoise = 0.75;
/** Part of a beep's power that is no sine and vanishes with it: codecs' and clipping's. Voices and strings have more. */
const mostImpurity = 0.06;
/** ... unless pitch and level do not move at all: a coder's and the noise's own. */
const mostImpurityUnmoved = 0.1;
const unmovedMs = 200;
/** A square wave's power in its fifth harmonic and those above. */
const squareRest = 0.08;
const octaveShare = 0.04;

/** Voices have their pitch below. */
const highestVoiceHz = 640;
const lowWanderHz = 1.2;
/** A coder's error; a voice that holds a note wavers by a half of a per cent at least. */
const lowWanderShare = 0.005;
const longestLowWander = { ms: 700, hz: 3 } as const;
const wanderInNoiseHz = 12;
/** The least of a low beep, in ms: alone or attached to other sound, one sine or two (vowels and chords are several). */
const lowMs = {
  plain: 140,
  alone: { one: 180, two: 280 },
  attached: { plain: 200, one: 280, two: 400 },
} as const;
const plainWanderHz = 0.7;
const plainImpurity = 0.002;
const plainEdgeDb = 15;
const pureImpurity = 0.005;
const shortestPureStepMs = 100;
const shortestLowSweepMs = 250;
const exactLowSweep = 0.004;
const leastLowRange = 0.08;
const longLowMs = 400;
const lowDropDb = 6;

const shortestPairMs = 100;
const shortestMovingMs = 140;
const exactMs = 200;
const exactSweep = 0.006;
/** Right after speech, or in the middle of it. */
const attachedMs = { still: 120, moving: 240 } as const;
/** A semitone: less is a voice that wavers. */
const leastStepRatio = 1.06;
/** Notes are held for longer. */
const longestStepMs = 600;
/** Between two turns of a slow warble, 3 Hz. */
const slowestTurnMs = 170;

export function isBeep(tone: ToneAndLine): boolean {
  const { shape, ms } = tone;
  if (tone.wholeness < leastWholeness) return false;
  if (!within(shape.hz, beepHz) || !within(ms, beepMs)) return false;
  if ((shape.secondHz ?? beepHz.min) < beepHz.min) return false;
  if (!isEdge(tone.dropDb, tone.afterAboveBeneathDb) || !isSameNoise(tone)) return false;
  if (impurityOf(tone) > (isUnmoved(tone) ? mostImpurityUnmoved : mostImpurity)) return false;
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
  if (ms < shortestMovingMs || !movesAsMachinesDo(tone)) return false;
  if (shape.levelSteady < (movesExactly(tone) ? 0.6 : 0.85)) return false;
  return comesAlone(tone) || (ms >= attachedMs.moving && impurityOf(tone) <= mostImpurity / 2);
}

function isStill({ shape, ms }: ToneAndLine): boolean {
  // Coders shake the level of a single high tone, but not its pitch.
  if (shape.secondHz === undefined) return shape.levelSteady >= 0.4;
  return shape.levelSteady >= 0.7 && ms >= shortestPairMs;
}

/** In one straight line, or from one pitch to the other: coders shake the level, as they do that of a still tone. */
function movesExactly({ shape, ms }: ToneAndLine): boolean {
  if (ms < exactMs) return false;
  return shape.sweepErrorHz <= shape.hz * exactSweep || (isStepped(shape) && shape.resting >= 0.95);
}

function movesAsMachinesDo({ shape, ms }: ToneAndLine): boolean {
  // A throat, or a string: machines that move their pitch do it with one sine.
  if (hasOctave(shape)) return false;
  return isSweep(shape) || isStepped(shape) || isWarble(shape, ms);
}

function isLowBeep(tone: ToneAndLine): boolean {
  const { shape, ms, dropDb } = tone;
  if (dropDb < lowDropDb || shape.levelSteady < (ms >= longLowMs ? 0.7 : 0.8)) return false;
  if (isPure(tone) && movesExactlyLow(tone)) return true;
  if (!isOnSteadyPitch(tone) && !isLongStepped(shape)) return false;
  return ms >= shortestLowMs(tone);
}

function shortestLowMs(tone: ToneAndLine): number {
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

/** Not even a sung vowel: nothing but one sine, on one pitch and one level. */
function isVeryPlain(tone: ToneAndLine): boolean {
  const { shape } = tone;
  if (shape.onPitch < 1 || shape.levelSteady < 1 || shape.wanderHz > plainWanderHz) return false;
  return impurityOf(tone) <= plainImpurity && tone.dropDb >= plainEdgeDb;
}

/** Nothing but sines, which begin and end at once. */
function isPure(tone: ToneAndLine): boolean {
  return impurityOf(tone) <= pureImpurity && Math.min(tone.riseDb, tone.dropDb) >= plainEdgeDb;
}

/** A voice glides too, and jumps; neither in a straight line nor from rest to rest, and not with one sine. */
function movesExactlyLow({ shape, ms }: ToneAndLine): boolean {
  if (hasOctave(shape)) return false;
  if (isStepped(shape) && shape.resting >= 0.85) {
    return shape.steps.every((step) => step.ms >= shortestPureStepMs);
  }
  const isExact = shape.sweepErrorHz <= shape.hz * exactLowSweep && shape.levelSteady >= 0.95;
  return isExact && ms >= shortestLowSweepMs && shape.rangeHz >= shape.hz * leastLowRange;
}

function isOnSteadyPitch({ shape, ms }: ToneAndLine): boolean {
  return isOnPitch(shape, 0.85) && shape.wanderHz <= allowedWanderHz(shape, ms);
}

/** A machine's sine is measured within a hertz; noise, as a share of its power, and coders blur that. */
function allowedWanderHz({ hz, db, beneathDb }: ToneShape, ms: number): number {
  if (ms >= longestLowWander.ms) return longestLowWander.hz;
  const noise = 10 ** ((beneathDb - db) / 10);
  const least = Math.max(lowWanderHz, lowWanderShare * hz);
  return Math.min(longestLowWander.hz, least + wanderInNoiseHz * noise);
}

function comesAlone({ riseDb, beforeAboveBeneathDb }: ToneAndLine): boolean {
  return isEdge(riseDb, beforeAboveBeneathDb);
}

function isEdge(stepDb: number, aboveBeneathDb: number): boolean {
  return stepDb >= edgeDb || (stepDb >= edgeInNoiseDb && aboveBeneathDb <= noiseChangeDb);
}

/** What it stands out of by little is the line's noise, there before and after; what comes with it or stays is music. */
function isSameNoise({ shape, riseDb, dropDb }: ToneAndLine): boolean {
  if (dropDb >= edgeDb) return true;
  return Math.abs(riseDb - dropDb) <= sameNoiseDb && shape.levelSteady >= steadyInNoise;
}

/** The line's noise is there after the tone; a voice's or an instrument's other partials are not. */
function impurityOf({ shape, dropDb }: ToneAndLine): number {
  const impurity = 10 ** ((shape.beneathDb - shape.db) / 10) - 10 ** (-dropDb / 10);
  return isSquare(shape) ? impurity - squareRest : impurity;
}

/** Odd harmonics only (clipped, a square wave): a voice has the even ones too. */
function isSquare({ hz, secondHz = 0 }: ToneShape): boolean {
  return isThirdHarmonic(hz, secondHz);
}

export function hasOctave({ hz, secondHz }: ToneShape): boolean {
  if (secondHz === undefined) return false;
  return Math.abs(Math.max(hz, secondHz) / Math.min(hz, secondHz) - 2) <= octaveShare;
}

/** Low enough for a voice's pitch, or for one of two harmonics. */
function isVoiceLike({ hz, secondHz = hz }: ToneShape): boolean {
  return Math.min(hz, secondHz) <= highestVoiceHz;
}

function isOnPitch(shape: ToneShape, needed: number): boolean {
  if (shape.onPitch < needed) return false;
  return shape.secondHz === undefined || shape.secondOnPitch >= needed;
}

/** Over a semitone at least: a high voice wavers by less. */
function isSweep(shape: ToneShape): boolean {
  if (shape.rangeHz < shape.hz * (leastStepRatio - 1)) return false;
  return shape.sweepErrorHz <= Math.max(8, shape.hz * 0.008);
}

function isStepped(shape: ToneShape): boolean {
  const [first, second] = shape.steps;
  if (first === undefined || second === undefined || shape.steps.length > 2) return false;
  const ratio = Math.max(first.hz, second.hz) / Math.min(first.hz, second.hz);
  if (Math.max(first.ms, second.ms) > longestStepMs) return false;
  return ratio >= leastStepRatio && shape.resting >= 0.75;
}

/** A voice jumps too, but does not rest before and after. */
function isLongStepped(shape: ToneShape): boolean {
  return isStepped(shape) && shape.steps.every(({ ms }) => ms >= lowMs.alone.one);
}

/** To and fro around one pitch, faster than a whistler bends it. */
function isWarble(shape: ToneShape, ms: number): boolean {
  return shape.rangeHz <= shape.hz * 0.15 && shape.turns >= Math.max(1, ms / slowestTurnMs - 1);
}
