// Follows tones over time and classifies each one after its end: a beep, a fax machine,
// announcement tones (SIT), or network signalling. A tone ends after 100 ms without it. To count as
// a beep it must leave quiet in that time.

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
  isNetworkTone,
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
  /** This frame is a tone of any kind, so it is not speech. */
  readonly tonal: boolean;
  /** A tone is under way, or ended so recently that it is not classified yet. */
  readonly pending: boolean;
  /** Pitch of a steady tone in this frame; 0 without one. */
  readonly hz: number;
  readonly found?: ToneFound;
  /**
   * What `found` will most likely be two frames later, for code that cannot wait and can correct
   * itself.
   */
  readonly ending?: ToneFound;
};

export type ToneDetector = {
  /**
   * Takes the latest frame. `afterSpeech` means that a voice was heard before. A low tone is then
   * more likely a beep than a network tone.
   */
  push(afterSpeech: boolean): ToneStep;
  /**
   * Takes a frame that never arrived. The tone may have continued in it. After ten consecutive lost
   * frames, the sender counts as silent.
   */
  skip(afterSpeech: boolean): ToneStep;
};

/** A shorter tone is a moment of speech. Any other tone may replace it. */
const minRunFrames = 4;
/**
 * Largest relative change of pitch between two frames of a sweep or a warble, or across lost
 * frames.
 */
const glide = 0.12;
/** A single pure sine may move faster, as a chirp does. No voice is so pure. */
const pureGlide = 0.25;
const pureDb = 11;
const samePitch = 0.01;
const louderDb = 6;
/** This many consecutive steady frames cannot be speech. */
const steadyRun = 3;
/** A low tone of this length fills the window of the close-pair detector. */
const pairAtFrames = 7;
const pairBelowHz = 520;

/**
 * Number of lost frames that may count towards the silence after a tone. The other frames must
 * arrive.
 */
const maxSkippedFrames = afterFrames - 2;

/**
 * 200 ms, more than a burst of losses. A mailbox sends nothing while it records, and many gateways
 * send nothing during silence.
 */
const maxLossFrames = 10;

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
    const found = run.reported ? undefined : classifyEnded(run, afterSpeech);
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
      if (lostFrames > maxLossFrames) return otherFrame(silenceDbfs, afterSpeech);
      // A lost frame may have held the tone, so at least two frames of the silence must arrive.
      if (run.gap < maxSkippedFrames) {
        run.afterDb[run.gap] = Number.NaN;
        run.gap += 1;
      }
      return isOpen(run) ? mayBeTone : noTone;
    },
  };
}

/**
 * 60 ms: about half of the silence that ends a tone for good, and longer than any gap that a codec
 * makes.
 */
const endingFrames = 3;

function withEnding(step: ToneStep, run: ToneRun, afterSpeech: boolean): ToneStep {
  if (run.gap < endingFrames || run.ending || run.reported) return step;
  run.ending = true;
  const ending = classifyEnded(run, afterSpeech);
  return ending === undefined ? step : { ...step, ending };
}

function tonalStep(run: ToneRun, afterSpeech: boolean): ToneStep {
  if (run.steadyOnEnd >= steadyRun) {
    return { ...(isOpen(run) ? toneUnderWay : toneGoesOn), hz: run.lastHz };
  }
  // Before the first voice, beating ringback and organ chords must not count as a voice.
  if (!afterSpeech) return toneGoesOn;
  return isOpen(run) ? mayBeTone : noTone;
}

/**
 * Returns true if the tone is still unclassified: too long for a moment of speech, and not too long
 * for a beep.
 */
function isOpen(run: ToneRun): boolean {
  return run.tonalFrames >= minRunFrames && runMs(run) <= beepMs.max;
}

/** Reports a fax that answers before its tone ends, because that tone lasts for seconds. */
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
  // A much louder tone of another pitch starts a new run: a beep over music.
  if (run.tonalFrames >= minRunFrames) return isNear || db < run.lastDb + louderDb;
  return run.gap <= 1 && isNear;
}

/**
 * Level of the line after the tone. It skips the first frame, which may hold the tone's end, and
 * the loudest of several frames: a key or a click.
 */
function quietAfter(run: ToneRun): number {
  const heard = run.afterDb
    .subarray(1, run.gap)
    .filter((db) => !Number.isNaN(db))
    .toSorted();
  return heard[Math.max(0, Math.min(heard.length - 1, 2))] ?? 0;
}

function classifyEnded(run: ToneRun, afterSpeech: boolean): ToneFound | undefined {
  if (run.tonalFrames < minRunFrames) return undefined;
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
  const doubt = doubtOf(ended, run, isNetworkTone(ended));
  return { kind, hz: Math.round(shape.hz), ms: ended.ms, doubt };
}
