// Follows tones over time and classifies each of them after its end as a beep, a fax machine,
// announcement tones (SIT), or network signalling. A tone has ended once we haven't heard it for
// 100 ms. After a beep, the line must also be quiet during those 100 ms.

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
  /** What else the beep could be. */
  readonly doubt: ToneDoubt;
};

export type ToneStep = {
  /** True if this frame is a tone of any kind and therefore isn't speech. */
  readonly tonal: boolean;
  /** True from a tone's start until we've classified it, which happens shortly after its end. */
  readonly pending: boolean;
  /** Pitch of a steady tone in this frame, or 0 if there isn't one. */
  readonly hz: number;
  readonly found?: ToneFound;
  /**
   * A prediction of `found`, two frames ahead, for callers that can't wait but can correct
   * themselves later.
   */
  readonly ending?: ToneFound;
};

export type ToneDetector = {
  /**
   * Analyses the latest frame. Set `afterSpeech` once we've heard a voice, because a low tone is
   * then more likely to be a beep than a network tone.
   */
  push(afterSpeech: boolean): ToneStep;
  /**
   * Handles a frame that never arrived, during which the tone may have continued. After ten lost
   * frames in a row, we assume that the sender has gone silent.
   */
  skip(afterSpeech: boolean): ToneStep;
};

/** A shorter tone is probably just a moment of speech, so it may be replaced by any other tone. */
const minRunFrames = 4;
/**
 * Maximum relative pitch change between two frames of a sweep or a warble, or across lost frames.
 */
const glide = 0.12;
/**
 * A single pure sine, e.g. a chirp, is allowed to move faster, because voices are never that pure.
 */
const pureGlide = 0.25;
const pureDb = 11;
const samePitch = 0.01;
const louderDb = 6;
/** This many steady frames in a row can't be speech. */
const steadyRun = 3;
/** A low tone of this length fills the window in which we search for close pairs of sines. */
const pairAtFrames = 7;
const pairBelowHz = 520;

/** The silence after a tone may include this many lost frames. The other frames must arrive. */
const maxSkippedFrames = afterFrames - 2;

/**
 * 200 ms, which is longer than packet loss usually lasts. Mailboxes don't send anything while
 * they're recording, and many gateways don't send anything during silence.
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
      // The tone may have continued in a lost frame, so at least two of the silent frames must have
      // arrived.
      if (run.gap < maxSkippedFrames) {
        run.afterDb[run.gap] = Number.NaN;
        run.gap += 1;
      }
      return isOpen(run) ? mayBeTone : noTone;
    },
  };
}

/**
 * 60 ms, which is about half of the silence after which a tone has definitely ended, but longer
 * than any gap that a codec leaves.
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
  // Before we've heard a voice, make sure that beating ringback or organ chords aren't mistaken for
  // a beep.
  if (!afterSpeech) return toneGoesOn;
  return isOpen(run) ? mayBeTone : noTone;
}

/**
 * True while the tone is unclassified, i.e. while it's too long to be a moment of speech but still
 * short enough to be a beep.
 */
function isOpen(run: ToneRun): boolean {
  return run.tonalFrames >= minRunFrames && runMs(run) <= beepMs.max;
}

/**
 * Reports an answering fax machine while its tone is still sounding, because the tone lasts several
 * seconds.
 */
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
  // A much louder tone at a different pitch, e.g. a beep over music, starts a new run.
  if (run.tonalFrames >= minRunFrames) return isNear || db < run.lastDb + louderDb;
  return run.gap <= 1 && isNear;
}

/**
 * Returns the line's level after the tone. We skip the first frame, because it may still contain
 * the end of the tone. If there are several frames, we also skip the loudest one, which may be a
 * key press or a click.
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
