// Classifies a tone after its end. Network tones, DTMF and fax tones have frequencies, pairs and
// durations that are defined in standards, so a tone that doesn't match any of them may be a beep.

import { type Band, isBeep, type ToneAndLine, within } from './tone-beep.ts';
import type { PitchRest, ToneShape } from './tone-shape.ts';

export type ToneKind = 'beep' | 'fax' | 'sit' | 'signalling';

export type EndedTone = ToneAndLine & {
  /**
   * Two sines whose frequencies are too close to tell apart in one frame, as in ringback and dial
   * tone.
   */
  readonly closePair: boolean;
  readonly afterSpeech: boolean;
};

/**
 * T.30: CNG 1100 ± 38 Hz, 0.5 s ± 15 %; CED 2100 ± 15 Hz, 2.6 to 4 s. Frames and codecs blur both.
 */
const cngHz: Band = { min: 1_055, max: 1_145 };
const cngMs: Band = { min: 400, max: 620 };
const cedHz: Band = { min: 2_080, max: 2_120 };
export const cedMs = 1_000;

/**
 * Per E.180 and its supplements, single-frequency dial, ringback, busy and waiting tones are in
 * this range worldwide.
 */
const networkHz: Band = { min: 340, max: 500 };
/** The most common network pitch, and the length of ringback at that pitch: 1 s (E.180). */
const europeanHz: Band = { min: 417, max: 433 };
const europeanRingbackMs: Band = { min: 850, max: 1_150 };
/**
 * Call waiting per ANSI T1.401: 440 Hz for 300 ms, which isn't repeated within the next ten
 * seconds.
 */
const callWaiting = { hz: { min: 434, max: 446 }, ms: { min: 270, max: 340 } } as const;
/** Any longer low tone is dial tone or American ringback. */
const maxLowBeepMs = 1_700;
/**
 * The tone in a busy signal, i.e. half of its period, isn't longer than this. Anything longer is
 * ringback.
 */
const maxCadenceMs = 560;
const minPairMs = 240;
const pairedWholeness = 0.75;
const pairedEdgeDb = 8;
/** Busy and congestion tone, ANSI T1.401. */
const busyPairHz = [480, 620] as const;
/** The three tones of SIT, ± 50 Hz (E.180). */
const sitHz = [950, 1_400, 1_800] as const;
const sitToleranceHz = 60;
/** Nominal length: 276 or 380 ms. */
const sitToneMs: Band = { min: 200, max: 460 };
/**
 * DTMF digits (Q.23). Receivers accept deviations of ± 1.5 %, and once the audio has been through a
 * codec, we can't measure its pitch more precisely than to within 1 %.
 */
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
  return isPairedBeep(tone) || isBeep(tone) ? 'beep' : undefined;
}

/**
 * Returns true if frequency and length match a cadenced network tone. We can't be sure until the
 * tone repeats.
 */
export function isNetworkTone(tone: EndedTone): boolean {
  const { shape, ms, closePair } = tone;
  if (closePair) return true;
  if (ms > maxCadenceMs) return false;
  return isBusyPair(shape) || (shape.secondHz === undefined && within(shape.hz, networkHz));
}

/**
 * Recognises a beep made of two sines whose frequencies are too close to tell apart in one frame.
 * Their beating hides every other feature, so we can only check the length and the edges.
 */
function isPairedBeep(tone: EndedTone): boolean {
  const { closePair, ms, wholeness, riseDb, dropDb } = tone;
  if (!closePair || ms < minPairMs) return false;
  return wholeness >= pairedWholeness && Math.min(riseDb, dropDb) >= pairedEdgeDb;
}

export function isCed(hz: number, ms: number): boolean {
  return within(hz, cedHz) && ms >= cedMs;
}

/** The last two tones are enough, because the call may have been answered after the first one. */
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
  if (isKey(shape)) return true;
  if (!afterSpeech && (closePair || isBusyPair(shape))) return true;
  if (closePair) return ms > maxLowBeepMs;
  if (shape.secondHz !== undefined && shape.secondHz > networkHz.max * 1.3) return false;
  if (!afterSpeech) return within(shape.hz, networkHz);
  if (within(shape.hz, callWaiting.hz) && within(ms, callWaiting.ms)) return true;
  if (!within(shape.hz, europeanHz)) return false;
  return within(ms, europeanRingbackMs) || ms > maxLowBeepMs;
}

function isBusyPair(shape: ToneShape): boolean {
  const [low, high] = pairOf(shape);
  return Math.abs(low - busyPairHz[0]) < 30 && Math.abs(high - busyPairHz[1]) < 30;
}

function isKey(shape: ToneShape): boolean {
  const [low, high] = pairOf(shape);
  const isNear = (hz: number, nominals: readonly number[]): boolean =>
    nominals.some((nominal) => Math.abs(hz - nominal) <= nominal * dtmfTolerance);
  return isNear(low, dtmfLowHz) && isNear(high, dtmfHighHz);
}

function pairOf({ hz, secondHz = 0 }: ToneShape): readonly [low: number, high: number] {
  return hz < secondHz ? [hz, secondHz] : [secondHz, hz];
}
