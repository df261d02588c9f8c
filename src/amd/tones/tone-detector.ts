// Follows tones over time and says what they were once they ended: a beep, a fax machine, announcement tones (SIT), or
// signalling of the network. A tone ends with 100 ms without it, in which it must leave quiet to have been a beep.

import { frameMs, silenceDbfs } from '../frame.ts';
import type { RecentAudio } from '../recent-audio.ts';
import { beepMs } from './tone-beep.ts';
import { doubtOf, type ToneDoubt } from './tone-doubt.ts';
import { createToneListener } from './tone-frame.ts';
import {
  cedMs,
  classifyTone,
  type EndedTone,
  isCed,
  isNetworks,
  type ToneKind,
} from './tone-kinds.ts';
import {
  afterFrames,
  clearRun,
  createToneRun,
  extendRun,
  runMs,
  type ToneFrame,
  type ToneRun,
} from './tone-run.ts';
import { shapeOf } from './tone-shape.ts';
import { isClosePair } from './tone-signalling.ts';

export type { ToneKind } from './tone-kinds.ts';
export type ToneFound = {
  readonly kind: ToneKind;
  readonly hz: number;
  readonly ms: number;
  /** What a beep may be instead. */
  readonly doubt: ToneDoubt;
};

export type ToneStep = {
  /** This frame is a tone, of whatever kind: not speech. */
  readonly tonal: boolean;
  /** A tone is under way, or ended so recently that its meaning is not known. */
  readonly pending: boolean;
  /** Of a steady tone that sounds; 0: none does. */
  readonly hz: number;
  readonly found?: ToneFound;
  /** What `found` will most likely say two frames later: for those who cannot wait, and can take it back. */
  readonly ending?: ToneFound;
};

export type ToneDetector = {
  /** The latest frame. `afterSpeech`: a voice was heard before. Then a low tone is a beep rather than the network's. */
  push(afterSpeech: boolean): ToneStep;
  /** A frame that never came: the tone may have gone on. After some on end the sender has gone quiet. */
  skip(afterSpeech: boolean): ToneStep;
};

/** Shorter ones are moments of speech: the next may as well be another tone. */
const shortestRunFrames = 4;
/** Pitch from one frame to the next, of a sweep or a warble; and of the same tone after a lost frame. */
const glide = 0.12;
/** What is nothing but one sine may move faster, as a chirp does: no voice is so pure. */
const pureGlide = 0.25;
const pureDb = 11;
const samePitch = 0.01;
const louderDb = 6;
/** That many steady frames on end are no speech. */
const steadyRun = 3;
/** A low tone this long fills what the finder of close pairs looks at. */
const pairAtFrames = 7;
const pairBelowHz = 520;

/** Of the frames after a tone; the rest has to be heard. */
const mostSkippedFrames = afterFrames - 2;

/** 200 ms, more than a burst of losses. A mailbox sends nothing while it records, many a gateway nothing of a silence. */
const longestLossFrames = 10;

const noTone: ToneStep = { tonal: false, pending: false, hz: 0 };
const mayBeTone: ToneStep = { tonal: false, pending: true, hz: 0 };
const toneGoesOn: ToneStep = { tonal: true, pending: false, hz: 0 };
const toneUnderWay: ToneStep = { tonal: true, pending: true, hz: 0 };

export function createToneDetector(recent: RecentAudio): ToneDetector {
  const listener = createToneListener(recent);
  const run = createToneRun();
  let lostFrames = 0;

  function toneFrame(afterSpeech: boolean): ToneStep {
    if (!continuesRun(run, listener.frame)) {
      clearRun(run);
      run.beforeDb = listener.beforeDb();
    }
    extendRun(run, listener.frame);
    if (run.tonalFrames === pairAtFrames && run.lastHz < pairBelowHz) {
      run.closePair = isClosePair(recent);
    }
    const fax = answeringFax(run);
    return fax === undefined ? tonalStep(run, afterSpeech) : { ...toneUnderWay, found: fax };
  }

  function otherFrame(dbfs: number, afterSpeech: boolean): ToneStep {
    if (run.tonalFrames === 0) return noTone;
    run.afterDb[run.gap] = dbfs;
    run.gap += 1;
    if (run.gap < afterFrames)
      return withEnding(isOpen(run) ? mayBeTone : noTone, run, afterSpeech);
    const found = run.reported ? undefined : whatEnded(run, afterSpeech);
    clearRun(run);
    return found === undefined ? noTone : { ...noTone, found };
  }

  return {
    push(afterSpeech) {
      lostFrames = 0;
      return listener.hears(run) ? toneFrame(afterSpeech) : otherFrame(recent.dbfs, afterSpeech);
    },
    skip(afterSpeech) {
      lostFrames += 1;
      if (run.tonalFrames === 0) return noTone;
      if (lostFrames > longestLossFrames) return otherFrame(silenceDbfs, afterSpeech);
      // Whether it was quiet is not known: what ends a tone has to be heard.
      if (run.gap < mostSkippedFrames) {
        run.afterDb[run.gap] = Number.NaN;
        run.gap += 1;
      }
      return isOpen(run) ? mayBeTone : noTone;
    },
  };
}

/** 60 ms: half of what ends a tone for good, and more than any coder's gap. */
const endingFrames = 3;

function withEnding(step: ToneStep, run: ToneRun, afterSpeech: boolean): ToneStep {
  if (run.gap < endingFrames || run.ending || run.reported) return step;
  run.ending = true;
  const ending = whatEnded(run, afterSpeech);
  return ending === undefined ? step : { ...step, ending };
}

function tonalStep(run: ToneRun, afterSpeech: boolean): ToneStep {
  if (run.steadyOnEnd >= steadyRun) {
    return { ...(isOpen(run) ? toneUnderWay : toneGoesOn), hz: run.lastHz };
  }
  // Before a voice is heard, ringback's beating and an organ's chord must not pass for a voice.
  if (!afterSpeech) return toneGoesOn;
  return isOpen(run) ? mayBeTone : noTone;
}

/** Its meaning is not known yet: too long for a moment of speech, and not too long for a beep. */
function isOpen(run: ToneRun): boolean {
  return run.tonalFrames >= shortestRunFrames && runMs(run) <= beepMs.max;
}

/** A fax that answers sounds for seconds: known before it ends. */
function answeringFax(run: ToneRun): ToneFound | undefined {
  if (run.tonalFrames * frameMs !== cedMs) return undefined;
  const { hz } = shapeOf(run);
  if (!isCed(hz, cedMs)) return undefined;
  run.reported = true;
  return { kind: 'fax', hz: Math.round(hz), ms: runMs(run), doubt: 'none' };
}

function continuesRun(run: ToneRun, { hz, db, beneathDb }: Readonly<ToneFrame>): boolean {
  if (run.tonalFrames === 0) return false;
  const isUnbroken = run.gap === 0 || Number.isNaN(run.afterDb[0]);
  const moving = db - beneathDb >= pureDb ? pureGlide : glide;
  const reach = isUnbroken ? moving : samePitch;
  const isNear = Math.abs(hz - run.lastHz) <= run.lastHz * reach;
  // A much louder one of another pitch begins anew: a beep over music.
  if (run.tonalFrames >= shortestRunFrames) return isNear || db < run.lastDb + louderDb;
  return run.gap <= 1 && isNear;
}

/** Not of the first frame, which may hold the tone's end, and not the loudest of several: a key, a click. */
function quietAfter(run: ToneRun): number {
  const heard = run.afterDb
    .subarray(1, run.gap)
    .filter((db) => !Number.isNaN(db))
    .toSorted();
  return heard[Math.max(0, Math.min(heard.length - 1, 2))] ?? 0;
}

function whatEnded(run: ToneRun, afterSpeech: boolean): ToneFound | undefined {
  if (run.tonalFrames < shortestRunFrames) return undefined;
  const shape = shapeOf(run);
  const afterDb = quietAfter(run);
  const ended: EndedTone = {
    shape,
    ms: runMs(run),
    wholeness: run.tonalFrames / run.frames,
    riseDb: shape.db - run.beforeDb,
    beforeAboveBeneathDb: run.beforeDb - shape.beneathDb,
    dropDb: shape.db - afterDb,
    afterAboveBeneathDb: afterDb - shape.beneathDb,
    closePair: run.closePair,
    afterSpeech,
  };
  const kind = classifyTone(ended);
  if (kind === undefined) return undefined;
  const doubt = doubtOf(ended, run, isNetworks(ended));
  return { kind, hz: Math.round(shape.hz), ms: ended.ms, doubt };
}
