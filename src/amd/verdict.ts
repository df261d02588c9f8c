// Person or machine? A decision on what was said so far, and nothing else: no clock, no events. People answer briefly and
// wait; machines go on talking. With a word threshold that rule alone decides.

import type { Utterance } from './utterance.ts';

export type Verdict = {
  readonly who: 'human' | 'machine';
  readonly reason: string;
  /** 0 to 1. */
  readonly confidence: number;
};

/** One word, or a hello: nobody's recorded greeting is so short. */
const wordMs = 850;
const oneWordMs = 1_500;
const twoWordsMs = 1_000;
/** A name, a question; people recite the name of a business within the next two seconds. */
const shortGreetingMs = 2_400;
/** The silence after which it was an answer: the more was said, the likelier another sentence follows. */
const waitAfterHelloMs = 680;
const waitAfterShortMs = 1_200;
const waitAfterLongMs = 1_300;
/** Nobody who wants an answer talks longer, pauses included or not. */
const longestPersonMs = 4_650;
const longestPersonSpeechMs = 3_480;
/** Without a threshold in the request this many words are a machine's greeting even when spoken fast. */
const mostWords = 14;
/** With a full stop inside: people recite their greeting in one breath. */
const longestPausedMs = 4_000;
const fullStopMs = 600;

/** Undefined: listen on. */
export function decide(
  utterance: Utterance,
  thresholdWordCount: number | undefined,
): Verdict | undefined {
  if (thresholdWordCount === undefined) return machineSoFar(utterance) ?? humanByNow(utterance);
  const { words } = utterance;
  if (words >= thresholdWordCount) return { who: 'machine', reason: 'word-count', confidence: 1 };
  return hasWaited(utterance) ? { who: 'human', reason: 'word-count', confidence: 1 } : undefined;
}

function machineSoFar(utterance: Utterance): Verdict | undefined {
  const { spanMs, speechMs, words, longestGapMs } = utterance;
  if (spanMs >= longestPersonMs)
    return { who: 'machine', reason: 'long-greeting', confidence: 0.9 };
  if (speechMs >= longestPersonSpeechMs) {
    return { who: 'machine', reason: 'dense-speech', confidence: 0.85 };
  }
  if (words >= mostWords) return { who: 'machine', reason: 'many-words', confidence: 0.8 };
  return spanMs >= longestPausedMs && longestGapMs >= fullStopMs
    ? { who: 'machine', reason: 'several-sentences', confidence: 0.7 }
    : undefined;
}

function humanByNow(utterance: Utterance): Verdict | undefined {
  if (!hasWaited(utterance)) return undefined;
  return utterance.spanMs <= shortGreetingMs
    ? { who: 'human', reason: 'short-greeting', confidence: 0.9 }
    : { who: 'human', reason: 'greeting-then-silence', confidence: 0.7 };
}

function hasWaited(utterance: Utterance): boolean {
  return utterance.pauseMs >= waitMs(utterance) && !utterance.beginning;
}

function waitMs(utterance: Utterance): number {
  if (isHello(utterance)) return waitAfterHelloMs;
  return utterance.spanMs <= shortGreetingMs ? waitAfterShortMs : waitAfterLongMs;
}

function isHello({ spanMs, words }: Utterance): boolean {
  if (words <= 1) return spanMs <= oneWordMs;
  return spanMs <= (words === 2 ? twoWordsMs : wordMs);
}
