// Turns voice frames into a rough account of what has been said: the bursts of speech, the pauses
// between them, and an estimate of the number of words.

import { frameMs, silenceDbfs } from '../frame.ts';
import {
  type Burst,
  clearBurst,
  extendBurst,
  isBeginning,
  isSpeech,
  isTone,
  newBurst,
  pauseBurst,
} from './burst.ts';
import { Syllables } from './syllables.ts';
import type { Voice } from './voice-activity.ts';

export type Utterance = {
  /** Total duration of the speech frames. */
  readonly speechMs: number;
  /** From the answer to the first speech. */
  readonly onsetMs: number;
  /** From the start of the first speech to the end of the last, including pauses. */
  readonly spanMs: number;
  /** Time since the last speech; 0 while someone is speaking. */
  readonly pauseMs: number;
  /** The longest pause so far within what has been said. */
  readonly longestGapMs: number;
  /** Total of the pauses so far in which the speaker seems to have waited for an answer. */
  readonly waitedMs: number;
  /** True if there's a sound that may still turn out to be speech. */
  readonly beginning: boolean;
  readonly syllables: number;
  /** A rough estimate, based on the syllables. */
  readonly words: number;
  readonly bursts: number;
  /** True if a recogniser has understood an offer to help at the end. */
  readonly asksForHelp?: boolean;
  /**
   * True if a recogniser has processed the whole utterance, so `words` is the recogniser's count.
   */
  readonly isTranscribed?: boolean;
};

export type UtteranceTracker = {
  /** Adds the next frame. Returns true if the frame is voiced speech from the voice in front. */
  push(voice: Voice): boolean;
  /** Handles a frame that never arrived. Speech continues through up to 60 ms of lost frames. */
  skip(): void;
  /**
   * Call this if the latest sound was a tone. We then discount the tone's edges and echo, because
   * they resembled speech.
   */
  discardTone(): void;
  /** Forgets what has been said so far, because somebody else is going to speak next. */
  restart(): void;
  /**
   * Returns undefined until we've heard a voice. The object is reused, so its fields change with
   * every frame.
   */
  current(): Utterance | undefined;
};

/**
 * Speech that trails off still counts as speech for this long. After that, we treat it as
 * background.
 */
const trailingMs = 300;
/**
 * Unvoiced sounds (s, f, t) count as speech for this long, within a word and after it. If they last
 * longer, they're key presses, paper or wind.
 */
const voicelessMs = 160;
/**
 * If a voice exceeds everything before it by this much, it becomes the voice in front, and we treat
 * everything else as background.
 */
const supersededDb = 12;
/**
 * English has 1.4 syllables per word, German 1.7, Spanish and Italian 2. Our value is lower because
 * we can't count syllables that run together.
 */
const syllablesPerWord = 1.3;
const maxConcealedMs = 60;
/** Somebody who pauses for this long is waiting for an answer. */
const answerExpectedMs = 1_000;

type Said = { -readonly [Member in keyof Utterance]: Utterance[Member] };

type Tracking = {
  readonly syllables: Syllables;
  readonly burst: Burst;
  readonly said: Said;
  /** The values from before this burst. We restore them if the burst turns out not to be speech. */
  readonly before: Pick<
    Said,
    'speechMs' | 'onsetMs' | 'longestGapMs' | 'waitedMs' | 'bursts' | 'syllables'
  > & {
    lastMs: number;
    loudestDbfs: number;
  };
  nowMs: number;
  lastMs: number;
  /** Time of the last frame that was as loud as the voice in front. */
  loudMs: number;
  voicedMs: number;
  loudestDbfs: number;
  lostMs: number;
  lastWasSpeech: boolean;
};

export function createUtteranceTracker(): UtteranceTracker {
  const tracking = newTracking();
  return {
    push(voice) {
      tracking.nowMs += frameMs;
      tracking.lostMs = 0;
      tracking.lastWasSpeech = voice.speech;
      if (tracking.burst.lengthMs === 0) tracking.before.syllables = tracking.syllables.count;
      tracking.syllables.push(voice.voiced, voice.dbfs);
      if (voice.speech || voice.tonal) return addSound(tracking, voice);
      pauseBurst(tracking.burst);
      return false;
    },
    skip() {
      tracking.nowMs += frameMs;
      tracking.lostMs += frameMs;
      const concealed = tracking.lastWasSpeech && tracking.lostMs <= maxConcealedMs;
      if (!concealed) return pauseBurst(tracking.burst);
      conceal(tracking);
    },
    discardTone() {
      const { burst } = tracking;
      if (burst.accepted && !isTone(burst)) return;
      if (burst.accepted) undoAccept(tracking);
      clearBurst(burst);
    },
    restart() {
      forget(tracking);
      clearBurst(tracking.burst);
      tracking.loudestDbfs = silenceDbfs;
    },
    current() {
      return tracking.said.bursts === 0 ? undefined : summary(tracking);
    },
  };
}

function newTracking(): Tracking {
  return {
    syllables: new Syllables(),
    burst: newBurst(),
    said: {
      speechMs: 0,
      onsetMs: 0,
      spanMs: 0,
      pauseMs: 0,
      longestGapMs: 0,
      waitedMs: 0,
      beginning: false,
      syllables: 0,
      words: 0,
      bursts: 0,
    },
    before: {
      speechMs: 0,
      onsetMs: 0,
      longestGapMs: 0,
      waitedMs: 0,
      bursts: 0,
      syllables: 0,
      lastMs: 0,
      loudestDbfs: silenceDbfs,
    },
    nowMs: 0,
    lastMs: 0,
    loudMs: 0,
    voicedMs: 0,
    loudestDbfs: silenceDbfs,
    lostMs: 0,
    lastWasSpeech: false,
  };
}

function addSound(tracking: Tracking, voice: Voice): boolean {
  const { burst, said } = tracking;
  extendBurst(burst, voice);
  if (voice.inFront) tracking.loudMs = tracking.nowMs;
  if (voice.voiced || voice.tonal) tracking.voicedMs = tracking.nowMs;
  if (!burst.accepted) {
    if (!isSpeech(burst)) return false;
    accept(tracking, voice);
  }
  if (!voice.speech || trailedOff(tracking)) return false;
  tracking.loudestDbfs = Math.max(tracking.loudestDbfs, burst.loudnessDbfs);
  tracking.lastMs = tracking.nowMs;
  said.speechMs += frameMs;
  return voice.voiced;
}

/**
 * Counts a lost frame as speech. We don't know the frame's content, so the burst's voiced share and
 * level don't change.
 */
function conceal(tracking: Tracking): void {
  const { burst, said } = tracking;
  burst.speechMs += frameMs;
  burst.lengthMs += frameMs;
  tracking.loudMs += frameMs;
  tracking.voicedMs += frameMs;
  if (!burst.accepted || trailedOff(tracking)) return;
  said.speechMs += frameMs;
  tracking.lastMs = tracking.nowMs;
}

function trailedOff({ nowMs, loudMs, voicedMs }: Tracking): boolean {
  return nowMs - loudMs > trailingMs || nowMs - voicedMs > voicelessMs;
}

/** Counts a burst that has just become long enough to be speech. */
function accept(tracking: Tracking, voice: Voice): void {
  const { burst, said, before, nowMs, lastMs, loudestDbfs } = tracking;
  before.speechMs = said.speechMs;
  before.onsetMs = said.onsetMs;
  before.longestGapMs = said.longestGapMs;
  before.waitedMs = said.waitedMs;
  before.bursts = said.bursts;
  before.lastMs = lastMs;
  before.loudestDbfs = loudestDbfs;
  if (said.bursts > 0 && burst.loudnessDbfs > loudestDbfs + supersededDb) forget(tracking);
  const startMs = nowMs - burst.lengthMs;
  if (said.bursts === 0) said.onsetMs = startMs;
  else addGap(said, startMs - lastMs);
  said.bursts += 1;
  // The current frame is added elsewhere.
  said.speechMs += burst.speechMs - (voice.speech ? frameMs : 0);
  tracking.lastMs = nowMs;
  burst.accepted = true;
}

function addGap(said: Said, gapMs: number): void {
  said.longestGapMs = Math.max(said.longestGapMs, gapMs);
  if (gapMs >= answerExpectedMs) said.waitedMs += gapMs;
}

function undoAccept(tracking: Tracking): void {
  const { said, before, syllables } = tracking;
  said.speechMs = before.speechMs;
  said.onsetMs = before.onsetMs;
  said.longestGapMs = before.longestGapMs;
  said.waitedMs = before.waitedMs;
  said.bursts = before.bursts;
  tracking.lastMs = before.lastMs;
  tracking.loudestDbfs = before.loudestDbfs;
  syllables.restart(before.syllables);
}

function forget({ said, syllables }: Tracking): void {
  said.bursts = 0;
  said.speechMs = 0;
  said.longestGapMs = 0;
  said.waitedMs = 0;
  syllables.restart(0);
}

function summary({ burst, said, syllables, nowMs, lastMs }: Tracking): Utterance {
  said.spanMs = lastMs - said.onsetMs;
  said.pauseMs = nowMs - lastMs;
  said.beginning = isBeginning(burst);
  // Each burst contains at least one word, and there are no words outside bursts.
  said.syllables = Math.max(1, syllables.count);
  said.words = Math.max(1, Math.round(said.syllables / syllablesPerWord));
  return said;
}
