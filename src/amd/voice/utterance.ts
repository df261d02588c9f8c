// Turns frames of voice into a rough account of what was said: bursts, pauses and an estimate of
// the words.

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
import { createSyllables, type Syllables } from './syllables.ts';
import type { Voice } from './voice-activity.ts';

export type Utterance = {
  /** Duration of all frames of speech. */
  readonly speechMs: number;
  /** From the answer to the first speech. */
  readonly onsetMs: number;
  /** From the first speech to the last, including pauses. */
  readonly spanMs: number;
  /** Time since the last speech; 0 while someone is speaking. */
  readonly pauseMs: number;
  /** The longest pause within what was said so far. */
  readonly longestGapMs: number;
  /** True if a sound has begun that may turn out to be speech. */
  readonly beginning: boolean;
  readonly syllables: number;
  /** A rough estimate from the syllables. */
  readonly words: number;
  readonly bursts: number;
  /** True if a recogniser understood an offer to help at the end. */
  readonly asksForHelp?: boolean;
  /** True if a recogniser has listened to the whole utterance, so `words` is its count. */
  readonly isTranscribed?: boolean;
};

export type UtteranceTracker = {
  /** Adds the next frame. Returns true if it's voiced speech from the speaker in front. */
  push(voice: Voice): boolean;
  /** Handles a frame that never arrived. Speech continues through up to 60 ms of lost frames. */
  skip(): void;
  /**
   * Call this if the latest sound was a tone. We then discount its edges and its echo, which looked
   * like speech.
   */
  discardTone(): void;
  /** Forgets what was said so far, because someone else speaks next. */
  restart(): void;
  /**
   * Returns undefined until we've heard a voice. The object is reused: its fields change with every
   * frame.
   */
  current(): Utterance | undefined;
};

/** Speech that trails off still counts for this long. After that, we treat it as background. */
const trailingMs = 300;
/**
 * Unvoiced sounds (s, f, t) count for this long, within a word and after it. If they go on, they're
 * keys, paper or wind.
 */
const voicelessMs = 160;
/**
 * If a voice is louder than everything before it by this much, it becomes the voice in front and we
 * treat the rest as background.
 */
const supersededDb = 12;
/**
 * English has 1.4, German 1.7, Spanish and Italian 2. Our value is lower because we don't count
 * syllables that run together.
 */
const syllablesPerWord = 1.3;
const maxConcealedMs = 60;

type Said = { -readonly [Member in keyof Utterance]: Utterance[Member] };

type Tracking = {
  readonly syllables: Syllables;
  readonly burst: Burst;
  readonly said: Said;
  /** The values from before this burst, which we restore if it turns out not to be speech. */
  readonly before: Pick<Said, 'speechMs' | 'onsetMs' | 'longestGapMs' | 'bursts' | 'syllables'> & {
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
      if (tracking.burst.lengthMs === 0) tracking.before.syllables = tracking.syllables.count();
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
    syllables: createSyllables(),
    burst: newBurst(),
    said: {
      speechMs: 0,
      onsetMs: 0,
      spanMs: 0,
      pauseMs: 0,
      longestGapMs: 0,
      beginning: false,
      syllables: 0,
      words: 0,
      bursts: 0,
    },
    before: {
      speechMs: 0,
      onsetMs: 0,
      longestGapMs: 0,
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
 * Counts a lost frame as speech. We don't know its content, so the burst's voiced share and level
 * stay the same.
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

/** Counts a burst that has become long enough to be speech. */
function accept(tracking: Tracking, voice: Voice): void {
  const { burst, said, before, nowMs, lastMs, loudestDbfs } = tracking;
  before.speechMs = said.speechMs;
  before.onsetMs = said.onsetMs;
  before.longestGapMs = said.longestGapMs;
  before.bursts = said.bursts;
  before.lastMs = lastMs;
  before.loudestDbfs = loudestDbfs;
  if (said.bursts > 0 && burst.loudnessDbfs > loudestDbfs + supersededDb) forget(tracking);
  const startMs = nowMs - burst.lengthMs;
  if (said.bursts === 0) said.onsetMs = startMs;
  else said.longestGapMs = Math.max(said.longestGapMs, startMs - lastMs);
  said.bursts += 1;
  // The current frame is counted separately.
  said.speechMs += burst.speechMs - (voice.speech ? frameMs : 0);
  tracking.lastMs = nowMs;
  burst.accepted = true;
}

function undoAccept(tracking: Tracking): void {
  const { said, before, syllables } = tracking;
  said.speechMs = before.speechMs;
  said.onsetMs = before.onsetMs;
  said.longestGapMs = before.longestGapMs;
  said.bursts = before.bursts;
  tracking.lastMs = before.lastMs;
  tracking.loudestDbfs = before.loudestDbfs;
  syllables.restart(before.syllables);
}

function forget({ said, syllables }: Tracking): void {
  said.bursts = 0;
  said.speechMs = 0;
  said.longestGapMs = 0;
  syllables.restart(0);
}

function summary({ burst, said, syllables, nowMs, lastMs }: Tracking): Utterance {
  said.spanMs = lastMs - said.onsetMs;
  said.pauseMs = nowMs - lastMs;
  said.beginning = isBeginning(burst);
  // Every burst is at least one word, and there are no words outside bursts.
  said.syllables = Math.max(1, syllables.count());
  said.words = Math.max(1, Math.round(said.syllables / syllablesPerWord));
  return said;
}
