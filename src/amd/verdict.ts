// Person or machine? A decision on what was said so far, and nothing else: no clock, no events. People answer briefly and
// wait; machines go on talking. With a word threshold that rule alone decides.

import type { Utterance } from './voice/utterance.ts';

export type Verdict = {
  readonly who: 'human' | 'machine';
  readonly reason: string;
  /** 0 to 1. */
  readonly confidence: number;
};

/** A hello, a name: hardly a recorded greeting is so short. By syllables: up to two, up to four, and more of them. */
const helloMs = { twoSyllables: 1_500, fourSyllables: 1_200, more: 850 } as const;
/** A name, a question; people recite the name of a business within the next two seconds. */
const shortGreetingMs = 2_400;
/** The silence after which it was an answer: the more was said, the likelier another sentence follows. */
const waitAfterHelloMs = 680;
const waitAfterShortMs = 1_200;
const waitAfterLongMs = 1_300;
/** A person who wants an answer talks no longer, pauses included or not. */
const longestPersonMs = 5_000;
const longestPersonSpeechMs = 3_800;
/** Without a threshold in the request this many words are a machine's greeting even when spoken fast. */
const mostWords = 17;
/** Where a recogniser understood no more than a name, what sounds like speech is not held against a person for a while. */
const fewWords = 4;
const longestWordlessMs = 7_000;
/** With a full stop inside: people recite their greeting in one breath. */
const longestPausedMs = 4_000;
const fullStopMs = 600;

/** Undefined: listen on. */
export function decide(
  utterance: Utterance,
  thresholdWordCount: number | undefined,
): Verdict | undefined {
  if (thresholdWordCount === undefined) {
    if (isOffer(utterance)) return humanByNow(utterance);
    return machineSoFar(utterance) ?? humanByNow(utterance);
  }
  const { words } = utterance;
  if (words >= thresholdWordCount) return { who: 'machine', reason: 'word-count', confidence: 1 };
  return hasWaited(utterance) ? { who: 'human', reason: 'word-count', confidence: 1 } : undefined;
}

// The confidences are what the reasons were worth on recordings, clean, noisy, coded and cut.

function machineSoFar(utterance: Utterance): Verdict | undefined {
  if (isHardlySpeech(utterance)) return undefined;
  const { spanMs, speechMs, words, longestGapMs } = utterance;
  if (spanMs >= longestPersonMs) return machine('long-greeting', 0.97);
  if (speechMs >= longestPersonSpeechMs) return machine('dense-speech', 0.95);
  if (words >= mostWords) return machine('many-words', 0.9);
  return spanMs >= longestPausedMs && longestGapMs >= fullStopMs
    ? machine('several-sentences', 0.95)
    : undefined;
}

/** Speech by its sound and next to no words in it: a hello, and then the room, or the network's tones. */
function isHardlySpeech({ isTranscribed = false, words, spanMs }: Utterance): boolean {
  return isTranscribed && words <= fewWords && spanMs < longestWordlessMs;
}

function machine(reason: string, confidence: number): Verdict {
  return { who: 'machine', reason, confidence };
}

function humanByNow(utterance: Utterance): Verdict | undefined {
  if (!hasWaited(utterance)) return undefined;
  const beyondMs = utterance.spanMs - shortGreetingMs;
  if (beyondMs <= 0) return { who: 'human', reason: 'short-greeting', confidence: 0.93 };
  // From 0.9 down to 0.65: the longer it was, the likelier a machine that beeps later, or never.
  if (isOffer(utterance)) return { who: 'human', reason: 'greeting-then-silence', confidence: 0.9 };
  const share = Math.min(1, beyondMs / (longestPersonMs - shortGreetingMs));
  const confidence = Math.round(90 - 25 * share) / 100;
  return { who: 'human', reason: 'greeting-then-silence', confidence };
}

function hasWaited(utterance: Utterance): boolean {
  return utterance.pauseMs >= waitMs(utterance) && !utterance.beginning;
}

/** A person recites a business for no longer, with whatever at its end. */
const longestOfferMs = 9_000;

/** "How may I help you?" waits for an answer. */
function isOffer({ asksForHelp = false, spanMs }: Utterance): boolean {
  return asksForHelp && spanMs <= longestOfferMs;
}

function waitMs(utterance: Utterance): number {
  if (isHello(utterance) || isOffer(utterance)) return waitAfterHelloMs;
  return utterance.spanMs <= shortGreetingMs ? waitAfterShortMs : waitAfterLongMs;
}

export function isHello({ spanMs, syllables }: Utterance): boolean {
  if (syllables <= 2) return spanMs <= helloMs.twoSyllables;
  return spanMs <= (syllables <= 4 ? helloMs.fourSyllables : helloMs.more);
}
