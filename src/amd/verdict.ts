// Decides between a person and a machine, based on what has been said so far. People answer briefly
// and then wait, whereas machines keep talking. If the request sets a word threshold, we don't
// apply any other rule. This file has no clock and emits no events. Instead, `event-grammar.ts`
// counts the frames and asks for a verdict.

import type { AmdSettings } from '../calls/call-types.ts';
import type { VerdictReason } from '../calls/detection/amd-reasons.ts';
import type { Utterance } from './voice/utterance.ts';

export type Verdict = {
  readonly who: 'human' | 'machine';
  readonly reason: VerdictReason;
  /** Confidence from 0 to 1. */
  readonly confidence: number;
};

/**
 * Maximum length of a hello or a name with up to two syllables, up to four, or more than four.
 * Hardly any recorded greeting is that short.
 */
const helloMs = { twoSyllables: 1_500, fourSyllables: 1_200, more: 850 } as const;
/**
 * Maximum length of a short greeting, e.g. a name or a question. People who answer with the name of
 * a business speak for up to two seconds longer.
 */
const shortGreetingMs = 2_400;
/**
 * After this much silence we consider a greeting finished. The longer the greeting, the more
 * silence we require, because a long greeting is more likely to continue with another sentence.
 */
const waitAfterHelloMs = 680;
const waitAfterShortMs = 1_200;
const waitAfterLongMs = 1_300;
/**
 * A person who is waiting for an answer doesn't talk for longer than this. The first limit includes
 * pauses, but the second doesn't.
 */
const maxPersonMs = 5_000;
const maxPersonSpeechMs = 3_800;
/**
 * Unless the request sets a threshold, this many words indicate a machine, even if they're spoken
 * quickly.
 */
const maxWords = 17;
/**
 * If a recogniser has understood no more than `fewWords`, sound that resembles speech doesn't
 * indicate a machine until `maxWordlessMs` have passed.
 */
const fewWords = 4;
const maxWordlessMs = 7_000;
/**
 * A greeting that is this long and contains a pause of `fullStopMs` comes from a machine, because
 * people recite theirs in one breath.
 */
const maxPausedMs = 4_000;
const fullStopMs = 600;

/** The part of a call's settings that the verdict depends on. */
export type VerdictSettings = Pick<AmdSettings, 'thresholdWordCount' | 'personAfterSilenceMs'>;

/** @returns undefined if it's too early to decide */
export function decide(utterance: Utterance, settings: VerdictSettings): Verdict | undefined {
  const { thresholdWordCount, personAfterSilenceMs = 0 } = settings;
  const isFinished = hasWaited(utterance, personAfterSilenceMs);
  if (thresholdWordCount !== undefined) {
    const isLong = utterance.words >= thresholdWordCount;
    if (isLong) return { who: 'machine', reason: 'word-count', confidence: 1 };
    return isFinished ? { who: 'human', reason: 'word-count', confidence: 1 } : undefined;
  }
  const isMachine = isOffer(utterance) ? undefined : machineSoFar(utterance, settings);
  return isMachine ?? (isFinished ? human(utterance) : undefined);
}

// Each confidence is the share of our recordings for which that reason led to the right verdict,
// including the noisy, encoded and truncated recordings.

function machineSoFar(utterance: Utterance, settings: VerdictSettings): Verdict | undefined {
  if (isHardlySpeech(utterance)) return undefined;
  const { speechMs, words, longestGapMs } = utterance;
  // While the verdict takes its time, a person says hello, waits, and says hello again. That wait
  // isn't part of a long greeting.
  const isPatient = settings.personAfterSilenceMs !== undefined;
  const spanMs = utterance.spanMs - (isPatient ? utterance.waitedMs : 0);
  if (spanMs >= maxPersonMs) return machine('long-greeting', 0.97);
  if (speechMs >= maxPersonSpeechMs) return machine('dense-speech', 0.95);
  if (words >= maxWords) return machine('many-words', 0.9);
  return spanMs >= maxPausedMs && longestGapMs >= fullStopMs
    ? machine('several-sentences', 0.95)
    : undefined;
}

/**
 * Returns true if the sound resembles speech but contains hardly any words, e.g. because room noise
 * or network tones followed a hello.
 */
function isHardlySpeech({ isTranscribed = false, words, spanMs }: Utterance): boolean {
  return isTranscribed && words <= fewWords && spanMs < maxWordlessMs;
}

function machine(reason: VerdictReason, confidence: number): Verdict {
  return { who: 'machine', reason, confidence };
}

function human(utterance: Utterance): Verdict {
  const beyondMs = utterance.spanMs - shortGreetingMs;
  if (beyondMs <= 0) return { who: 'human', reason: 'short-greeting', confidence: 0.93 };
  if (isOffer(utterance)) return { who: 'human', reason: 'greeting-then-silence', confidence: 0.9 };
  // Falls from 0.9 to 0.65, because the longer the greeting, the more likely it is to come from a
  // machine that beeps later, or never.
  const share = Math.min(1, beyondMs / (maxPersonMs - shortGreetingMs));
  const confidence = Math.round(90 - 25 * share) / 100;
  return { who: 'human', reason: 'greeting-then-silence', confidence };
}

function hasWaited(utterance: Utterance, personAfterSilenceMs: number): boolean {
  if (utterance.beginning) return false;
  return utterance.pauseMs >= Math.max(waitMs(utterance), personAfterSilenceMs);
}

/**
 * People who answer with a business greeting and end it with an offer to help don't talk for longer
 * than this.
 */
const maxOfferMs = 9_000;

/** After "How may I help you?", a person waits for an answer. */
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
