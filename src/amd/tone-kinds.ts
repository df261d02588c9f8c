// What an ended tone was: the frequencies, pairs and durations that standards give to the network's tones, to keys and to fax
// machines. What is none of them may be a beep.

import { type Band, isBeep, type ToneAndLine, within } from './tone-beep.ts';
import type { PitchRest, ToneShape } from './tone-shape.ts';

export type ToneKind = 'beep' | 'fax' | 'sit' | 'signalling';

export type EndedTone = ToneAndLine & {
  /** Two sines closer than a frame can tell apart: ringback and dial tone. */
  readonly closePair: boolean;
  readonly afterSpeech: boolean;
};

/** T.30: CNG 1100 ± 38 Hz, 0.5 s ± 15 %; CED 2100 ± 15 Hz, 2.6 to 4 s. Frames and codecs blur both. */
const cngHz: Band = { min: 1_055, max: 1_145 };
const cngMs: Band = { min: 400, max: 620 };
const cedHz: Band = { min: 2_080, max: 2_120 };
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
/** 276 or 380 ms. */
const sitToneMs: Band = { min: 200, max: 460 };
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
  const last = steps.slice(-sitHz.length);
  const awaited = sitHz.slice(-last.length);
  return last.length >= 2 && last.every((step, index) => isSitTone(step, awaited[index] ?? 0));
}

function isSitTone({ hz, ms }: PitchRest, nominalHz: number): boolean {
  return Math.abs(hz - nominalHz) <= sitToleranceHz && within(ms, sitToneMs);
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
