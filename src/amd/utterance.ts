// Turns speech frames into what was said, roughly: bursts, pauses and an estimate of the words. Syllable nuclei (peaks of the
// level with a dip between them, after de Jong & Wempe 2009) divided by the syllables of a word.

import { frameMs } from './frame.ts';

export type Utterance = {
  /** Frames of speech. */
  readonly speechMs: number;
  /** From the first speech to the last, pauses included. */
  readonly spanMs: number;
  /** Since the last speech; 0 while it lasts or before the first. */
  readonly pauseMs: number;
  readonly words: number;
  readonly bursts: number;
};

export type UtteranceTracker = {
  push(speech: boolean, energyDbfs: number): void;
  /** A frame that never came goes on as the one before it, for a little while. */
  skip(): void;
  /** Undefined until somebody spoke. */
  current(): Utterance | undefined;
};

/** Shorter sounds are clicks, keys and coughs. */
const shortestBurstMs = 100;
/** Gaps that belong to the word: plosives, and the detector's flicker. */
const bridgedGapMs = 120;
/** English 1.4, German 1.7, Spanish and Italian 2: syllables of a word in running speech. */
const syllablesPerWord = 1.5;
const syllableDipDb = 3;
const longestConcealedMs = 60;

export function createUtteranceTracker(): UtteranceTracker {
  const syllables = createSyllableCounter();
  let nowMs = 0;
  let speechMs = 0;
  let firstMs = 0;
  let lastMs = 0;
  let bursts = 0;
  let burstMs = 0;
  let gapMs = 0;
  let lostMs = 0;
  let lastWasSpeech = false;

  function speechFrame(): void {
    gapMs = 0;
    const before = burstMs;
    burstMs += frameMs;
    if (burstMs < shortestBurstMs) return;
    if (before < shortestBurstMs) {
      if (bursts === 0) firstMs = nowMs - burstMs;
      bursts += 1;
      speechMs += before;
    }
    speechMs += frameMs;
    lastMs = nowMs;
  }

  function advance(speech: boolean): void {
    nowMs += frameMs;
    lastWasSpeech = speech;
    if (speech) {
      speechFrame();
      return;
    }
    gapMs += frameMs;
    if (gapMs > bridgedGapMs) burstMs = 0;
  }

  return {
    push(speech, energyDbfs) {
      lostMs = 0;
      syllables.push(speech, energyDbfs);
      advance(speech);
    },
    skip() {
      lostMs += frameMs;
      advance(lastWasSpeech && lostMs <= longestConcealedMs);
    },
    current() {
      if (bursts === 0) return undefined;
      return {
        speechMs,
        spanMs: lastMs - firstMs,
        pauseMs: nowMs - lastMs,
        // A burst is at least a word; no word without a burst.
        words: Math.max(1, Math.round(syllables.count() / syllablesPerWord)),
        bursts,
      };
    },
  };
}

function createSyllableCounter(): {
  push(speech: boolean, energyDbfs: number): void;
  count(): number;
} {
  let counted = 0;
  let smoothed = -96;
  let peak = -96;
  let dip = -96;
  let rising = false;
  return {
    push(speech, energyDbfs) {
      smoothed = 0.5 * smoothed + 0.5 * energyDbfs;
      if (rising) {
        peak = Math.max(peak, smoothed);
        if (smoothed < peak - syllableDipDb) {
          rising = false;
          dip = smoothed;
        }
        return;
      }
      dip = Math.min(dip, smoothed);
      if (speech && smoothed > dip + syllableDipDb) {
        rising = true;
        peak = smoothed;
        counted += 1;
      }
    },
    count: () => counted,
  };
}
