// Decides between person and machine, based on what was said so far. People answer briefly and
// wait, whereas machines keep talking. If the request sets a word threshold, that's the only rule.
// There's no clock here, and no events: `event-grammar.ts` counts frames and asks for a verdict.

import type { Utterance } from './voice/utterance.ts';

export type Verdict = {
  readonly who: 'human' | 'machine';
  readonly reason: string;
  /** Confidence from 0 to 1. */
  readonly confidence: number;
};

/**
 * Maximum length of a hello or a name with up to two syllables, up to four, or more. Hardly any
 * recorded greeting is that short.
 */
const helloMs = { twoSyllables: 1_500, fourSyllables: 1_200, more: 850 } as const;
/**
 * Maximum length of a short greeting, e.g. a name or a question. People who recite a business name
 * take up to two seconds longer.
 */
const shortGreetingMs = 2_400;
/**
 * Silence after which we consider a greeting finished. It grows with the greeting's length, because
 * longer greetings are more likely to continue with another sentence.
 */
const waitAfterHelloMs = 680;
const waitAfterShortMs = 1_200;
const waitAfterLongMs = 1_300;
/**
 * A person who wants an answer doesn't talk longer than this. The first limit includes pauses, the
 * second doesn't.
 */
const maxPersonMs = 5_000;
const maxPersonSpeechMs = 3_800;
/**
 * If the request doesn't set a threshold, this many words mean a machine, even if they're spoken
 * fast.
 */
const maxWords = 17;
/**
 * If a recogniser understood at most `fewWords`, speech-like sound doesn't count as a machine until
 * `maxWordlessMs`.
 */
const fewWords = 4;
const maxWordlessMs = 7_000;
/**
 * If a greeting is this long and contains a pause of `fullStopMs`, it's a machine. People recite
 * theirs in one breath.
 */
const maxPausedMs = 4_000;
const fullStopMs = 600;

/** @returns undefined if it's too early to decide */
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

// Each confidence is how often that reason was right on our recordings, including the noisy, coded
// and cut ones.

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
 * Returns true if the sound resembles speech but contains hardly any words, e.g. a hello followed
 * by room noise or network tones.
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
  if (isOffer(utterance)) return { who: 'human', reason: 'greeting-then-silence', confidence: 0.9 };
  // Falls from 0.9 to 0.65: the longer the greeting, the more likely it is a machine that beeps
  // later, or never.
  const share = Math.min(1, beyondMs / (maxPersonMs - shortGreetingMs));
  const confidence = Math.round(90 - 25 * share) / 100;
  return { who: 'human', reason: 'greeting-then-silence', confidence };
}

function hasWaited(utterance: Utterance): boolean {
  return utterance.pauseMs >= waitMs(utterance) && !utterance.beginning;
}

/** Maximum length of a business greeting that a person recites and ends with an offer to help. */
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
