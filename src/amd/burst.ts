// One sound without a gap: speech once it is long and voiced enough, and as loud as the one who speaks into the telephone.

import { frameMs, silenceDbfs } from './frame.ts';
import type { Voice } from './voice-activity.ts';

export type Burst = {
  speechMs: number;
  voicedMs: number;
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
/** Gaps that belong to the word: plosives, and the detector's flicker. */
const bridgedGapMs = 120;

export function newBurst(): Burst {
  return {
    speechMs: 0,
    voicedMs: 0,
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
  burst.lengthMs = 0;
  burst.gapMs = 0;
  burst.loudnessDbfs = silenceDbfs;
  burst.inFront = false;
  burst.accepted = false;
}

export function burstGoesOn(burst: Burst, voice: Voice): void {
  burst.speechMs += frameMs;
  burst.lengthMs += burst.gapMs + frameMs;
  burst.gapMs = 0;
  if (voice.voiced) burst.voicedMs += frameMs;
  if (voice.inFront) burst.inFront = true;
  burst.loudnessDbfs = Math.max(burst.loudnessDbfs, voice.loudnessDbfs);
}

export function burstPauses(burst: Burst): void {
  if (burst.speechMs === 0) return;
  burst.gapMs += frameMs;
  if (burst.gapMs > bridgedGapMs) clearBurst(burst);
}

export function isSpeech(burst: Burst): boolean {
  return burst.inFront && burst.speechMs >= shortestBurstMs && burst.voicedMs >= shortestVoicedMs;
}

/** It may become speech: known within 100 ms. */
export function isBeginning(burst: Burst): boolean {
  return !burst.accepted && burst.inFront && burst.voicedMs > 0;
}
