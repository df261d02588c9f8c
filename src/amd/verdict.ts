// Person or machine? A decision on what was said so far, and nothing else: no clock, no events. People answer briefly and
// wait; machines go on talking. With a word threshold that rule alone decides.

import type { Utterance } from './utterance.ts';

export type Verdict = {
  readonly who: 'human' | 'machine';
  readonly reason: string;
  /** 0 to 1. */
  readonly confidence: number;
};

/** A person's answer is over within this, pauses included. */
const longestShortGreetingMs = 1_800;
/** Between a short answer and a talking machine lies doubt: decided by the pause that follows, less surely. */
const shortestLongGreetingMs = 2_700;
const answeredPauseMs = 800;
/** Without a threshold in the request nine words are a machine's greeting even when spoken fast. */
const priorWords = 9;

/** Undefined: listen on. */
export function decide(
  utterance: Utterance,
  thresholdWordCount: number | undefined,
): Verdict | undefined {
  const ended = utterance.pauseMs >= answeredPauseMs;
  if (thresholdWordCount !== undefined) {
    if (utterance.words >= thresholdWordCount) {
      return { who: 'machine', reason: 'word-count', confidence: 1 };
    }
    return ended ? { who: 'human', reason: 'word-count', confidence: 1 } : undefined;
  }
  if (utterance.spanMs >= shortestLongGreetingMs) {
    return {
      who: 'machine',
      reason: 'long-greeting',
      confidence: longGreetingConfidence(utterance),
    };
  }
  if (!ended) return undefined;
  if (utterance.spanMs <= longestShortGreetingMs) {
    return { who: 'human', reason: 'short-greeting', confidence: 0.9 };
  }
  return utterance.words >= priorWords
    ? { who: 'machine', reason: 'many-words', confidence: 0.6 }
    : { who: 'human', reason: 'medium-greeting', confidence: 0.6 };
}

function longGreetingConfidence(utterance: Utterance): number {
  // Dense speech is a prepared text; scattered words may be a person in a noisy place.
  return utterance.speechMs / utterance.spanMs > 0.6 ? 0.9 : 0.7;
}
