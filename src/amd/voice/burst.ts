// A burst is sound without gaps of more than 120 ms. It counts as speech once it's long enough,
// voiced enough, and as loud as the voice in front.

import { frameMs, silenceDbfs } from '../frame.ts';
import type { Voice } from './voice-activity.ts';

export type Burst = {
  speechMs: number;
  voicedMs: number;
  /** Duration of tones, and of vowels that are as steady as a tone. */
  tonalMs: number;
  /** Speech before the first tone in the burst. */
  beforeToneMs: number;
  /** From the first frame of the burst to the last, including tonal frames. */
  lengthMs: number;
  gapMs: number;
  loudnessDbfs: number;
  inFront: boolean;
  /** True once the burst counts as speech. */
  accepted: boolean;
};

/** Anything shorter is a click, a key or a cough. */
const minBurstMs = 100;
const minVoicedMs = 60;
/**
 * Minimum length of a word's steady vowel, and of the rest of the word. In a beep or a DTMF digit,
 * only one or two frames look like the rest of a word.
 */
const minVowelMs = 80;
/** Maximum gap within a word, due to plosives or because the voice detector flickers. */
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

/** How long it takes to recognise a tone as a tone. */
const maxToneOnsetMs = 120;

/**
 * Returns true if the burst was a tone from the start, i.e. what looked like speech was just the
 * tone's edges and echo.
 */
export function isTone({ speechMs, tonalMs, beforeToneMs }: Burst): boolean {
  return tonalMs >= speechMs && beforeToneMs <= maxToneOnsetMs;
}

/** Returns true if the burst may still become speech. We know within 100 ms. */
export function isBeginning(burst: Burst): boolean {
  return !burst.accepted && burst.inFront && burst.voicedMs > 0;
}
