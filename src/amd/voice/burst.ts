// A burst: sound without a gap longer than 120 ms. It counts as speech once it is long enough,
// voiced enough, and as loud as the voice in front.

import { frameMs, silenceDbfs } from '../frame.ts';
import type { Voice } from './voice-activity.ts';

export type Burst = {
  speechMs: number;
  voicedMs: number;
  /** Duration of tones, or of vowels as steady as a tone. */
  tonalMs: number;
  /** Speech before the first tone in the burst. */
  beforeToneMs: number;
  /** From the first frame of the burst to the last, including tonal frames. */
  lengthMs: number;
  gapMs: number;
  loudnessDbfs: number;
  inFront: boolean;
  /** The burst counts as speech. */
  accepted: boolean;
};

/** Shorter sounds are clicks, keys and coughs. */
const minBurstMs = 100;
const minVoicedMs = 60;
/**
 * Minimum length of a steady vowel in a word, and of the rest of that word. A beep or a DTMF digit
 * has only one or two frames that look like the rest of a word.
 */
const minVowelMs = 80;
/** Longest gap within a word: plosives, and the flicker of the voice detector. */
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

export function extendBurst(burst: Burst, voice: Voice): void {
  if (voice.speech) burst.speechMs += frameMs;
  else burst.tonalMs += frameMs;
  if (burst.tonalMs === 0) burst.beforeToneMs = burst.speechMs;
  burst.lengthMs += burst.gapMs + frameMs;
  burst.gapMs = 0;
  if (voice.voiced) burst.voicedMs += frameMs;
  if (voice.inFront) burst.inFront = true;
  burst.loudnessDbfs = Math.max(burst.loudnessDbfs, voice.loudnessDbfs);
}

export function pauseBurst(burst: Burst): void {
  if (burst.lengthMs === 0) return;
  burst.gapMs += frameMs;
  if (burst.gapMs > bridgedGapMs) clearBurst(burst);
}

export function isSpeech({ inFront, speechMs, voicedMs, tonalMs }: Burst): boolean {
  if (!inFront || voicedMs < minVoicedMs) return false;
  if (speechMs >= minBurstMs) return true;
  return speechMs >= minVowelMs && speechMs * 2 >= tonalMs && tonalMs >= minVowelMs;
}

/** How long a tone sounds before it is recognised as a tone. */
const maxToneOnsetMs = 120;

/**
 * Returns true if the burst was a tone from the start. What seemed to be speech was then the edges
 * and the echo of the tone.
 */
export function isTone({ speechMs, tonalMs, beforeToneMs }: Burst): boolean {
  return tonalMs >= speechMs && beforeToneMs <= maxToneOnsetMs;
}

/** Returns true if the burst may become speech. That is decided within 100 ms. */
export function isBeginning(burst: Burst): boolean {
  return !burst.accepted && burst.inFront && burst.voicedMs > 0;
}
