// Turns frames of voice into what was said, roughly: bursts, pauses and an estimate of the words.

import { frameMs, silenceDbfs } from '../frame.ts';
import {
  type Burst,
  burstGoesOn,
  burstPauses,
  clearBurst,
  isBeginning,
  isSpeech,
  isTone,
  newBurst,
} from './burst.ts';
import { createSyllables, type Syllables } from './syllables.ts';
import type { Voice } from './voice-activity.ts';

export type Utterance = {
  /** Frames of speech. */
  readonly speechMs: number;
  /** From the answer to the first speech. */
  readonly onsetMs: number;
  /** From the first speech to the last, pauses included. */
  readonly spanMs: number;
  /** Since the last speech; 0 while it lasts. */
  readonly pauseMs: number;
  /** The longest pause within what was said so far. */
  readonly longestGapMs: number;
  /** Something began that may become speech. */
  readonly beginning: boolean;
  readonly syllables: number;
  /** From the syllables, roughly. */
  readonly words: number;
  readonly bursts: number;
  /** A recogniser understood it to end with an offer to help. */
  readonly asksForHelp?: boolean;
  /** A recogniser listened to all of it: the words are its. */
  readonly isTranscribed?: boolean;
};

export type UtteranceTracker = {
  /** True: this frame is the voice of the one who speaks. */
  push(voice: Voice): boolean;
  /** A frame that never came goes on as the one before it, for a little while. */
  skip(): void;
  /** What sounded until now was a tone, and with it what its edges and its echo passed for. */
  wasTone(): void;
  /** Forgets what was said: the next to speak is another voice. */
  restart(): void;
  /** Undefined until a voice was heard. One object, changed with every frame. */
  current(): Utterance | undefined;
};

/** What trails off counts that long; then it is the background that goes on. */
const trailingMs = 300;
/** And sounds without voice (s, f, t), in a word and after it. Longer ones are keys, paper and wind. */
const voicelessMs = 160;
/** A voice that much louder than all before it is the one in front, and what was before it was the room. */
const supersededDb = 12;
/** English 1.4, German 1.7, Spanish and Italian 2; less those that run into their neighbours and are not counted. */
const syllablesPerWord = 1.3;
const longestConcealedMs = 60;

type Said = { -readonly [Member in keyof Utterance]: Utterance[Member] };

type Tracking = {
  readonly syllables: Syllables;
  readonly burst: Burst;
  readonly said: Said;
  /** What was said before this burst, should it turn out to be none. */
  readonly before: Pick<Said, 'speechMs' | 'onsetMs' | 'longestGapMs' | 'bursts' | 'syllables'> & {
    lastMs: number;
    loudestDbfs: number;
  };
  nowMs: number;
  lastMs: number;
  /** Of the last frame that was as loud as the voice in front. */
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
      if (voice.speech || voice.tonal) return spoke(tracking, voice);
      burstPauses(tracking.burst);
      return false;
    },
    skip() {
      tracking.nowMs += frameMs;
      tracking.lostMs += frameMs;
      const concealed = tracking.lastWasSpeech && tracking.lostMs <= longestConcealedMs;
      if (!concealed) return burstPauses(tracking.burst);
      conceal(tracking);
    },
    wasTone() {
      const { burst } = tracking;
      if (burst.accepted && !isTone(burst)) return;
      if (burst.accepted) takeBack(tracking);
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

function spoke(tracking: Tracking, voice: Voice): boolean {
  const { burst, said } = tracking;
  burstGoesOn(burst, voice);
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

/** Speech goes on; what was in it is not known, so it is held against neither the voice nor its level. */
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

/** The burst became long enough to be speech. */
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
  // This frame is counted by itself.
  said.speechMs += burst.speechMs - (voice.speech ? frameMs : 0);
  tracking.lastMs = nowMs;
  burst.accepted = true;
}

function takeBack(tracking: Tracking): void {
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
  // A burst is at least a word; no word without a burst.
  said.syllables = Math.max(1, syllables.count());
  said.words = Math.max(1, Math.round(said.syllables / syllablesPerWord));
  return said;
}
