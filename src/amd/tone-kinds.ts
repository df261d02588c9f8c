// What an ended tone was: the rules that tell a voicemail's beep from the tones of the network, of keys, fax machines, voices
// and music. A beep is pure, keeps its pitch (or moves it as machines do) and its level, and stands alone.

import type { ToneShape } from './tone-shape.ts';

export type ToneKind = 'beep' | 'fax' | 'sit' | 'signalling';

export type EndedTone = {
  readonly shape: ToneShape;
  readonly ms: number;
  /** Part of its frames that were tone. */
  readonly wholeness: number;
  /** How much louder it was than the line before it, and than the line after it. */
  readonly riseDb: number;
  readonly dropDb: number;
  /** What remains, against what lay beneath the tone. */
  readonly aboveBeneathDb: number;
  /** Two sines closer than a frame can tell apart: ringback and dial tone. */
  readonly closePair: boolean;
  readonly afterSpeech: boolean;
};

type Band = { readonly min: number; readonly max: number };

const beepHz: Band = { min: 345, max: 2_260 };
const beepMs: Band = { min: 80, max: 2_500 };
/** Below, voices have their pitch: a beep there must be longer, and steady. */
const highestVoiceHz = 560;
const shortestLowBeepMs = 180;
const shortestLowPairMs = 280;
const steadierThanVoiceHz = 3;
const shortestAttachedMs = 120;
const onPitchShare = 0.75;
const quieterDb = 8;
const residueDb = 5;

/** T.30: CNG 1100 ± 38 Hz, 0.5 s ± 15 %; CED 2100 ± 15 Hz, 2.6 to 4 s. Frames and codecs blur both. */
const cngHz: Band = { min: 1_055, max: 1_145 };
const cngMs: Band = { min: 400, max: 620 };
const cedHz: Band = { min: 2_070, max: 2_130 };
export const cedMs = 1_000;

/** E.180 and its supplements: dial, ringback, busy and waiting tones of one frequency lie here the world over. */
const networkHz: Band = { min: 340, max: 500 };
/** The commonest of them, which no machine beeps at. */
const europeanHz: Band = { min: 417, max: 433 };
/** Call waiting, ANSI T1.401: 440 Hz for 300 ms. */
const callWaiting = { hz: { min: 434, max: 446 }, ms: { min: 220, max: 380 } } as const;
/** ANSI T1.401 busy and congestion. */
const busyPairHz = [480, 620] as const;
/** E.180: SIT's three tones, ± 50 Hz. */
const sitHz = [950, 1_400, 1_800] as const;
const sitToleranceHz = 60;
/** Q.23: keys. Receivers take ± 1.5 %, and a coded frame's measure is not better than 1 %. */
const dtmfLowHz = [697, 770, 852, 941] as const;
const dtmfHighHz = [1_209, 1_336, 1_477, 1_633] as const;
const dtmfTolerance = 0.025;

export function classifyTone(tone: EndedTone): ToneKind | undefined {
  const { shape, ms, afterSpeech } = tone;
  if (isCed(shape.hz, ms)) return 'fax';
  if (isSit(shape)) return 'sit';
  const single = shape.secondHz === undefined && shape.onPitch >= 0.8;
  if (!afterSpeech && single && within(shape.hz, cngHz) && within(ms, cngMs)) return 'fax';
  if (isSignalling(tone)) return 'signalling';
  return isBeep(tone) ? 'beep' : undefined;
}

export function isCed(hz: number, ms: number): boolean {
  return within(hz, cedHz) && ms >= cedMs;
}

/** The last two tones alone say it as well, when the call was answered late. */
function isSit({ steps }: ToneShape): boolean {
  const [first, second, third] = steps.slice(-3);
  if (third !== undefined) {
    return isNear(first, sitHz[0]) && isNear(second, sitHz[1]) && isNear(third, sitHz[2]);
  }
  return isNear(first, sitHz[1]) && isNear(second, sitHz[2]);
}

function isNear(hz: number | undefined, nominal: number): boolean {
  return hz !== undefined && Math.abs(hz - nominal) <= sitToleranceHz;
}

function isSignalling(tone: EndedTone): boolean {
  const { shape, ms, afterSpeech, closePair } = tone;
  if (closePair || isBusyPair(shape) || isKey(shape)) return true;
  if (shape.secondHz !== undefined && shape.secondHz > networkHz.max * 1.3) return false;
  if (!afterSpeech) return within(shape.hz, networkHz);
  if (within(shape.hz, europeanHz)) return true;
  return within(shape.hz, callWaiting.hz) && within(ms, callWaiting.ms);
}

function isBusyPair(shape: ToneShape): boolean {
  const [low, high] = pairOf(shape);
  return Math.abs(low - busyPairHz[0]) < 30 && Math.abs(high - busyPairHz[1]) < 30;
}

function isKey(shape: ToneShape): boolean {
  const [low, high] = pairOf(shape);
  const isOne = (hz: number, of: readonly number[]): boolean =>
    of.some((nominal) => Math.abs(hz - nominal) <= nominal * dtmfTolerance);
  return isOne(low, dtmfLowHz) && isOne(high, dtmfHighHz);
}

function pairOf({ hz, secondHz = 0 }: ToneShape): readonly [low: number, high: number] {
  return hz < secondHz ? [hz, secondHz] : [secondHz, hz];
}

function isBeep(tone: EndedTone): boolean {
  const { shape, ms } = tone;
  // More than a hiccup's worth of it was no tone: speech or music with tonal moments.
  if (tone.wholeness < 0.75 || !within(shape.hz, beepHz) || !within(ms, beepMs)) return false;
  if (!standsAlone(tone)) return false;
  if (isVoiceLike(shape)) return isBeepAmongVoices(tone);
  const onPitch = isOnPitch(shape, onPitchShare);
  // Coders shake the level of a high tone, but not its pitch.
  if (shape.levelSteady < (onPitch ? 0.4 : 0.7) || impurityOf(tone) > 0.1) return false;
  if (tone.riseDb < quieterDb)
    return onPitch && ms >= shortestAttachedMs && impurityOf(tone) <= 0.05;
  return onPitch || isSweep(shape) || isStepped(shape) || isWarble(shape);
}

/** It leaves silence, or only the noise it was heard over. */
function standsAlone({ dropDb, aboveBeneathDb }: EndedTone): boolean {
  return dropDb >= quieterDb || (dropDb >= 3 && aboveBeneathDb <= residueDb);
}

function isBeepAmongVoices(tone: EndedTone): boolean {
  const { shape, ms } = tone;
  if (tone.dropDb < 6 || impurityOf(tone) > 0.05 || shape.levelSteady < 0.8) return false;
  if (!isOnPitch(shape, 0.85) || shape.sweepErrorHz > steadierThanVoiceHz) return false;
  const alone = shape.secondHz === undefined && tone.riseDb >= quieterDb;
  return ms >= (alone ? shortestLowBeepMs : shortestLowPairMs);
}

/** Part of its power that was no sine and vanished with it: a voice's or an instrument's other partials, not the line's noise. */
function impurityOf({ shape, dropDb }: EndedTone): number {
  return 10 ** ((shape.beneathDb - shape.db) / 10) - 10 ** (-dropDb / 10);
}

/** Low enough for a voice's pitch, or two of its harmonics. */
function isVoiceLike(shape: ToneShape): boolean {
  if (shape.hz <= highestVoiceHz) return true;
  return shape.secondHz !== undefined && shape.secondHz <= highestVoiceHz;
}

function isOnPitch(shape: ToneShape, needed: number): boolean {
  if (shape.onPitch < needed) return false;
  return shape.secondHz === undefined || shape.secondOnPitch >= needed;
}

function isSweep(shape: ToneShape): boolean {
  return shape.sweepErrorHz <= Math.max(12, shape.hz * 0.012);
}

function isStepped(shape: ToneShape): boolean {
  return shape.steps.length === 2 && shape.resting >= 0.75;
}

/** Around one pitch, too fast to follow. */
function isWarble(shape: ToneShape): boolean {
  return shape.rangeHz <= shape.hz * 0.15 && shape.levelSteady >= 0.85;
}

function within(value: number, band: Band): boolean {
  return value >= band.min && value <= band.max;
}
