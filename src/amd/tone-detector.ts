// Follows tones over time and says what they were once they ended: a beep, a fax machine, or signalling of the network.
// A beep stands alone: after it the line is much quieter, which neither music nor a drawn-out vowel is.

import { frameMs } from './frame.ts';
import { createToneSpectrum, type Tone } from './tone-spectrum.ts';

export type ToneKind = 'beep' | 'fax' | 'signalling';
export type ToneFound = { readonly kind: ToneKind; readonly hz: number; readonly ms: number };

export type ToneStep = {
  /** This frame is a tone, of whatever kind: not speech. */
  readonly tonal: boolean;
  /** A tone is under way, or ended so recently that its meaning is not known. */
  readonly pending: boolean;
  readonly found?: ToneFound;
};

export type ToneDetector = {
  /** `afterSpeech`: somebody has spoken before. Then a low tone is a beep rather than the network's. */
  push(frame: Int16Array, energyDbfs: number, afterSpeech: boolean): ToneStep;
  /** A frame that never came: the tone may have gone on. */
  skip(): ToneStep;
};

const quietestToneDbfs = -45;
const shortestBeepMs = 100;
const longestBeepMs = 2_500;
const lowestBeepHz = 350;
const highestBeepHz = 2_250;
/** Frames without tone inside one: a codec's hiccup, the step of a two-tone beep. */
const bridgedFrames = 3;
/** Listened to after a tone, to know that it stood alone. */
const afterFrames = 10;
const quieterAfterDb = 8;

/** T.30: CNG 1100 ± 38 Hz, 0.5 s ± 15 %; CED 2100 ± 15 Hz, 2.6 to 4 s. */
const cng = { hz: 1_100, toleranceHz: 45, minMs: 400, maxMs: 620 };
const ced = { hz: 2_100, toleranceHz: 40, minMs: 1_000 };
/** Dial, ringback and busy tones of the world lie here, alone or in pairs (E.180: 425; US 350+440, 440+480, 480+620). */
const signallingHz = { min: 340, max: 500 };
const busyPairHz = [480, 620] as const;
/** SIT: three rising tones of 276 or 380 ms. */
const sitHz = [950, 1_400, 1_800] as const;
const dtmfLowHz = { min: 680, max: 960 };
const dtmfHighHz = { min: 1_190, max: 1_500 };
const dtmfLongestMs = 400;

/** A machine's tone keeps its pitch and level from frame to frame; a sung vowel does neither for long. */
const steadyHz = 6;
const steadyDb = 1.5;
/** That many steady frames on end are no speech. */
const steadyRun = 3;
/** Of a beep. */
const steadyShare = 0.6;
/** The pitch of voices: lower beeps must be longer and steadier. */
const highestVoiceHz = 560;
const shortestLowBeepMs = 180;
const steadyLowShare = 0.8;

type Run = {
  frames: number;
  tonalFrames: number;
  steadyFrames: number;
  steadyOnEnd: number;
  lastDbfs: number;
  energyDbfs: number;
  readonly hz: number[];
  readonly second: number[];
};

/** More frames of a run than this tell nothing new (5 s); bounds what a hostile tone can make us keep. */
const maxTrackedFrames = 250;

export function createToneDetector(): ToneDetector {
  const spectrum = createToneSpectrum();
  let run: Run | undefined;
  let sinceTone = 0;
  let afterEnergy = 0;

  function tonalFrame(tone: Tone, energyDbfs: number, afterSpeech: boolean): ToneStep {
    run = extended(run, tone, energyDbfs, sinceTone);
    sinceTone = 0;
    afterEnergy = 0;
    // Before anybody spoke, ringback's beating and an organ's chord must not pass for a voice.
    const tonal = !afterSpeech || run.steadyOnEnd >= steadyRun;
    // A fax that answers sounds for seconds: known before it ends.
    if (run.tonalFrames * frameMs === ced.minMs && isNear(median(run.hz), ced)) {
      return { tonal: true, pending: true, found: describe('fax', run) };
    }
    return { tonal, pending: run.steadyOnEnd >= steadyRun };
  }

  function otherFrame(energyDbfs: number, afterSpeech: boolean): ToneStep {
    if (run === undefined) return { tonal: false, pending: false };
    sinceTone += 1;
    if (sinceTone <= bridgedFrames) return { tonal: false, pending: true };
    afterEnergy += 10 ** (energyDbfs / 10);
    if (sinceTone < bridgedFrames + afterFrames) return { tonal: false, pending: isCandidate(run) };
    const quieter = run.energyDbfs - 10 * Math.log10(afterEnergy / afterFrames) >= quieterAfterDb;
    const ended = run;
    run = undefined;
    sinceTone = 0;
    afterEnergy = 0;
    const kind = isLongEnough(ended) ? classify(ended, quieter, afterSpeech) : undefined;
    return kind === undefined
      ? { tonal: false, pending: false }
      : { tonal: false, pending: false, found: describe(kind, ended) };
  }

  return {
    push(frame, energyDbfs, afterSpeech) {
      const tone = energyDbfs < quietestToneDbfs ? undefined : spectrum.measure(frame);
      if (tone === undefined) return otherFrame(energyDbfs, afterSpeech);
      // A new tone after more than a hiccup: the old one did not stand alone, so it was music, cadence or speech.
      if (sinceTone > bridgedFrames) {
        run = undefined;
        sinceTone = 0;
      }
      return tonalFrame(tone, energyDbfs, afterSpeech);
    },
    skip() {
      if (run !== undefined && sinceTone < bridgedFrames) sinceTone += 1;
      return { tonal: false, pending: run !== undefined && sinceTone <= bridgedFrames };
    },
  };
}

function extended(before: Run | undefined, tone: Tone, energyDbfs: number, gap: number): Run {
  const run = before ?? {
    frames: 0,
    tonalFrames: 0,
    steadyFrames: 0,
    steadyOnEnd: 0,
    lastDbfs: energyDbfs,
    energyDbfs,
    hz: [],
    second: [],
  };
  const lastHz = run.hz.at(-1) ?? tone.hz;
  // A sweep, a warble or the step of a two-tone beep moves the pitch, but not the level and not among the voices' pitches.
  const steady =
    Math.abs(energyDbfs - run.lastDbfs) <= steadyDb &&
    (Math.abs(tone.hz - lastHz) <= steadyHz || Math.min(tone.hz, lastHz) > highestVoiceHz);
  run.steadyOnEnd = steady && gap === 0 ? run.steadyOnEnd + 1 : 0;
  if (steady) run.steadyFrames += 1;
  run.frames += gap + 1;
  run.tonalFrames += 1;
  run.lastDbfs = energyDbfs;
  run.energyDbfs = Math.max(run.energyDbfs, energyDbfs);
  if (run.hz.length < maxTrackedFrames) {
    run.hz.push(tone.hz);
    if (tone.secondHz !== undefined) run.second.push(tone.secondHz);
  }
  return run;
}

function describe(kind: ToneKind, run: Run): ToneFound {
  return { kind, hz: median(run.hz), ms: run.frames * frameMs };
}

/** Worth waiting for what follows it. */
function isCandidate(run: Run): boolean {
  return isLongEnough(run) && run.steadyFrames >= run.tonalFrames * steadyShare;
}

function isLongEnough(run: Run): boolean {
  return run.tonalFrames * frameMs >= shortestBeepMs - frameMs;
}

function classify(run: Run, quieter: boolean, afterSpeech: boolean): ToneKind | undefined {
  const hz = median(run.hz);
  const ms = run.frames * frameMs;
  if (isNear(hz, ced) && ms >= ced.minMs) return 'fax';
  const isCng = isNear(hz, cng) && inRange(ms, { min: cng.minMs, max: cng.maxMs });
  if (!afterSpeech && isCng && run.second.length < 3) return 'fax';
  if (isSignalling(run, hz, ms, afterSpeech)) return 'signalling';
  return quieter && isBeep(run, hz, ms) ? 'beep' : undefined;
}

function isBeep(run: Run, hz: number, ms: number): boolean {
  const low = hz <= highestVoiceHz;
  const shortestMs = low ? shortestLowBeepMs : shortestBeepMs;
  // More than a hiccup's worth of the run was no tone: speech or music with tonal moments.
  const whole = run.tonalFrames >= run.frames * 0.7;
  const steady = run.steadyFrames >= run.tonalFrames * (low ? steadyLowShare : steadyShare);
  const beepHz = { min: lowestBeepHz, max: highestBeepHz };
  return (
    whole && steady && inRange(hz, beepHz) && inRange(ms, { min: shortestMs, max: longestBeepMs })
  );
}

function isSignalling(run: Run, hz: number, ms: number, afterSpeech: boolean): boolean {
  const paired = run.second.length >= run.tonalFrames / 2;
  const secondHz = paired ? median(run.second) : 0;
  const [low, high] = hz < secondHz ? [hz, secondHz] : [secondHz, hz];
  if (paired && inRange(low, dtmfLowHz) && inRange(high, dtmfHighHz) && ms <= dtmfLongestMs)
    return true;
  if (paired && Math.abs(low - busyPairHz[0]) < 30 && Math.abs(high - busyPairHz[1]) < 30)
    return true;
  if (!afterSpeech && inRange(hz, signallingHz) && !paired) return true;
  return sitHz.every((step) => run.hz.filter((value) => Math.abs(value - step) < 50).length >= 8);
}

function inRange(value: number, range: { readonly min: number; readonly max: number }): boolean {
  return value >= range.min && value <= range.max;
}

function isNear(
  value: number,
  tone: { readonly hz: number; readonly toleranceHz: number },
): boolean {
  return Math.abs(value - tone.hz) <= tone.toleranceHz;
}

function median(values: readonly number[]): number {
  return values.toSorted((left, right) => left - right)[Math.floor(values.length / 2)] ?? 0;
}
