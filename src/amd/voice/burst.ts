// A burst is a stretch of sound without gaps of more than 120 ms. It counts as speech once it's
// long enough, contains enough voiced sound, and is as loud as the voice in front, i.e. the person
// who is speaking directly into the phone.

import { frameMs, silenceDbfs } from '../frame.ts';
import type { Voice } from './voice-activity.ts';

export type Burst = {
  speechMs: number;
  voicedMs: number;
  /** Duration of tones, and of vowels that are as steady as a tone. */
  tonalMs: number;
  /** Speech before the first tone in the burst. */
  beforeToneMs: number;
  /** From the burst's first frame to its last, including tonal frames. */
  lengthMs: number;
  gapMs: number;
  loudnessDbfs: number;
  inFront: boolean;
  /** True once the burst counts as speech. */
  accepted: boolean;
};

/** Anything shorter is a click, a cough or a key press. */
const minBurstMs = 100;
const minVoicedMs = 60;
/**
 * Minimum lengths of a word's steady vowel (first value) and of the rest of the word (second
 * value). In a beep or a DTMF digit, only one or two frames resemble the rest of a word.
 */
const minVowelMs = 80;
/**
 * Gaps within a word aren't longer than this. They're caused by plosives, or by a voice detector
 * that misses a frame or two.
 */
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

/** By this time, the tone detector has recognised a tone. */
const maxToneOnsetMs = 120;

/**
 * Returns true if the burst was a tone from the start, which means that only the tone's edges and
 * its echo resembled speech.
 */
export function isTone({ speechMs, tonalMs, beforeToneMs }: Burst): boolean {
  return tonalMs >= speechMs && beforeToneMs <= maxToneOnsetMs;
}

/** Returns true if the burst may still turn into speech. It takes us up to 100 ms to find out. */
export function isBeginning(burst: Burst): boolean {
  return !burst.accepted && burst.inFront && burst.voicedMs > 0;
}
