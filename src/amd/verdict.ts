// Decides between person and machine from what was said so far. It has no clock and emits no
// events. People answer briefly and wait; machines keep talking. If the request sets a word
// threshold, only that rule decides.

import type { Utterance } from './voice/utterance.ts';

export type Verdict = {
  readonly who: 'human' | 'machine';
  readonly reason: string;
  /** Confidence from 0 to 1. */
  readonly confidence: number;
};

/**
 * Longest hello or name, by its number of syllables: up to two, up to four, or more. Hardly any
 * recorded greeting is so short.
 */
const helloMs = { twoSyllables: 1_500, fourSyllables: 1_200, more: 850 } as const;
/**
 * Longest short greeting: a name or a question. People who recite the name of a business take up to
 * two seconds more.
 */
const shortGreetingMs = 2_400;
/**
 * Silence after which a greeting counts as finished. It grows with the greeting, because a longer
 * greeting is more likely to continue with another sentence.
 */
const waitAfterHelloMs = 680;
const waitAfterShortMs = 1_200;
const waitAfterLongMs = 1_300;
/**
 * A person who wants an answer does not talk for longer. The first limit includes pauses, the
 * second does not.
 */
const maxPersonMs = 5_000;
const maxPersonSpeechMs = 3_800;
/**
 * Without a threshold in the request, this many words are a machine's greeting, even if they are
 * spoken fast.
 */
const maxWords = 17;
/**
 * If a recogniser understood at most `fewWords`, speech-like sound counts as a machine only after
 * `maxWordlessMs`.
 */
const fewWords = 4;
const maxWordlessMs = 7_000;
/**
 * A greeting this long with a pause of `fullStopMs` is a machine's: people recite their greeting in
 * one breath.
 */
const maxPausedMs = 4_000;
const fullStopMs = 600;

/** @returns undefined if it is too early to decide */
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

// Each confidence is the share of verdicts with that reason that were right on our recordings,
// which include noisy, coded and cut ones.

function machineSoFar(utterance: Utterance): Verdict | undefined {
  if (isHardlySpeech(utterance)) return undefined;
  const { spanMs, speechMs, words, longestGapMs } = utterance;
  if (spanMs >= maxPersonMs) return machine('long-greeting', 0.97);
  if (speechMs >= maxPersonSpeechMs) return machine('dense-speech', 0.95);
  if (words >= maxWords) return machine('many-words', 0.9);
  return spanMs >= maxPausedMs && longestGapMs >= fullStopMs
    ? machine('several-sentences', 0.95)
    : undefined;
}

/**
 * Returns true if the sound is like speech but contains hardly any words: a hello, followed by room
 * noise or network tones.
 */
function isHardlySpeech({ isTranscribed = false, words, spanMs }: Utterance): boolean {
  return isTranscribed && words <= fewWords && spanMs < maxWordlessMs;
}

function machine(reason: string, confidence: number): Verdict {
  return { who: 'machine', reason, confidence };
}

function humanByNow(utterance: Utterance): Verdict | undefined {
  if (!hasWaited(utterance)) return undefined;
  const beyondMs = utterance.spanMs - shortGreetingMs;
  if (beyondMs <= 0) return { who: 'human', reason: 'short-greeting', confidence: 0.93 };
  // Falls from 0.9 to 0.65: the longer the greeting, the more likely it is a machine that beeps
  // later, or never.
  if (isOffer(utterance)) return { who: 'human', reason: 'greeting-then-silence', confidence: 0.9 };
  const share = Math.min(1, beyondMs / (maxPersonMs - shortGreetingMs));
  const confidence = Math.round(90 - 25 * share) / 100;
  return { who: 'human', reason: 'greeting-then-silence', confidence };
}

function hasWaited(utterance: Utterance): boolean {
  return utterance.pauseMs >= waitMs(utterance) && !utterance.beginning;
}

/** Longest recital of a business by a person, with an offer to help at its end. */
const maxOfferMs = 9_000;

/** A person who asks "How may I help you?" waits for an answer. */
function isOffer({ asksForHelp = false, spanMs }: Utterance): boolean {
  return asksForHelp && spanMs <= maxOfferMs;
}

function waitMs(utterance: Utterance): number {
  if (isHello(utterance) || isOffer(utterance)) return waitAfterHelloMs;
  return utterance.spanMs <= shortGreetingMs ? waitAfterShortMs : waitAfterLongMs;
}

export function isHello({ spanMs, syllables }: Utterance): boolean {
  if (syllables <= 2) return spanMs <= helloMs.twoSyllables;
  return spanMs <= (syllables <= 4 ? helloMs.fourSyllables : helloMs.more);
}
