// One sound without a gap: speech once it is long and voiced enough, and as loud as the one who speaks into the telephone.

import { frameMs, silenceDbfs } from '../frame.ts';
import type { Voice } from './voice-activity.ts';

export type Burst = {
  speechMs: number;
  voicedMs: number;
  /** Tones, or vowels as steady as a tone. */
  tonalMs: number;
  /** Speech before the first tone in it. */
  beforeToneMs: number;
  /** From its first speech to its last. */
  lengthMs: number;
  gapMs: number;
  loudnessDbfs: number;
  inFront: boolean;
  /** Counted as speech. */
  accepted: boolean;
};

/** Shorter sounds are clicks, keys and coughs. */
const shortestBurstMs = 100;
const shortestVoicedMs = 60;
/** Of a word with a steady vowel in it, the vowel and the rest each. A beep or a digit has a frame or two of a rest. */
const shortestVowelMs = 80;
/** Gaps that belong to the word: plosives, and the detector's flicker. */
const bridgedGapMs = 120;

export function newBurst(): Burst {
  return {
    speechMs: 0,
    voicedMs: 0,
    tonalMs: 0,
    beforeToneMs: 0,
    lengthMs: 0,
    gapMs: 0,
    loudnessDbfs: silenceDbfs,
    inFront: false,
    accepted: false,
  };
}

export function clearBurst(burst: Burst): void {
  burst.speechMs = 0;
  burst.voicedMs = 0;
  burst.tonalMs = 0;
  burst.beforeToneMs = 0;
  burst.lengthMs = 0;
  burst.gapMs = 0;
  burst.loudnessDbfs = silenceDbfs;
  burst.inFront = false;
  burst.accepted = false;
}

export function burstGoesOn(burst: Burst, voice: Voice): void {
  if (voice.speech) burst.speechMs += frameMs;
  else burst.tonalMs += frameMs;
  if (burst.tonalMs === 0) burst.beforeToneMs = burst.speechMs;
  burst.lengthMs += burst.gapMs + frameMs;
  burst.gapMs = 0;
  if (voice.voiced) burst.voicedMs += frameMs;
  if (voice.inFront) burst.inFront = true;
  burst.loudnessDbfs = Math.max(burst.loudnessDbfs, voice.loudnessDbfs);
}

export function burstPauses(burst: Burst): void {
  if (burst.lengthMs === 0) return;
  burst.gapMs += frameMs;
  if (burst.gapMs > bridgedGapMs) clearBurst(burst);
}

export function isSpeech({ inFront, speechMs, voicedMs, tonalMs }: Burst): boolean {
  if (!inFront || voicedMs < shortestVoicedMs) return false;
  if (speechMs >= shortestBurstMs) return true;
  return speechMs >= shortestVowelMs && speechMs * 2 >= tonalMs && tonalMs >= shortestVowelMs;
}

/** Of a tone: what is heard of it until it is known as one. */
const longestToneOnsetMs = 120;

/** It was a tone from its start, and what seemed to be speech were its edges and its echo. */
export function isTone({ speechMs, tonalMs, beforeToneMs }: Burst): boolean {
  return tonalMs >= speechMs && beforeToneMs <= longestToneOnsetMs;
}

/** It may become speech: known within 100 ms. */
export function isBeginning(burst: Burst): boolean {
  return !burst.accepted && burst.inFront && burst.voicedMs > 0;
}
