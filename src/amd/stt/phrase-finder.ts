// Finds a language's phrases in a transcript. Only exact matches count, because changing a single
// word turns many of the phrases into something that people say.

import type { Phrases } from './phrase-lists.ts';
import { phrasesByLanguage } from './phrases.ts';
import type { SettlingPhrase } from './transcription.ts';
import { uncontracted } from './words.ts';

export type PhraseFinder = {
  settling(transcript: string): SettlingPhrase | undefined;
  /**
   * Returns true if the transcript ends with an offer to help, which means that the speaker is
   * waiting for an answer.
   */
  asksForHelp(transcript: string): boolean;
};

/**
 * The words that `…` in a phrase may match. That's enough for "your name, your number and a short",
 * but not enough to join two sentences.
 */
const gap = '(?:\\S+ ){0,6}?';
/** Matches "… you today" or "… my dear". Any more words would be another sentence. */
const ending = '(?:\\S+ ){0,3}$';
const cuesNeeded = 2;
/** We only search the end of the text, because we've already searched the rest when it arrived. */
const latestCharacters = 500;

/**
 * One finder per language, and another for all languages. Building the patterns takes a few
 * milliseconds, which is too long during calls.
 */
const finders = new Map<string, PhraseFinder>();

export function phraseFinder(language: string): PhraseFinder {
  const base = language.toLowerCase().split(/[-_]/, 1)[0] ?? '';
  const isListed = Object.hasOwn(phrasesByLanguage, base);
  // A provider may use its own language name, e.g. `multi`, which can stand for any language. For
  // other languages, we don't have any phrases.
  const key = isListed ? base : /^[a-z]{2,3}$/.test(base) ? 'none' : 'any';
  const finder = finders.get(key) ?? createPhraseFinder(tablesOf(key));
  finders.set(key, finder);
  return finder;
}

/** Builds every finder and uses it once, so that the first call isn't delayed. */
export function warmUpPhraseFinders(): void {
  for (const language of [...Object.keys(phrasesByLanguage), 'any']) {
    const finder = phraseFinder(language);
    finder.settling('ready');
    finder.asksForHelp('ready');
  }
}

function tablesOf(key: string): readonly Phrases[] {
  if (key === 'any') return Object.values(phrasesByLanguage);
  const own = phrasesByLanguage[key];
  return own === undefined ? [] : [own];
}

function createPhraseFinder(spoken: readonly Phrases[]): PhraseFinder {
  const all = (kind: Exclude<keyof Phrases, 'cues'>) =>
    spoken.flatMap((table) => table[kind] ?? []);
  const voicemail = patternOf(all('voicemail'));
  const callScreening = patternOf(all('callScreening'));
  const asksForHelp = patternOf(all('asksForHelp'), ending);
  // A table's cues are only combined with each other.
  const cues = spoken.map(({ cues: groups = [] }) => groups.map((group) => patternOf(group)));
  const person = patternOf([...all('saidBesideCues'), ...all('asksForHelp')]);
  const isRecorded = (text: string) =>
    cues.some((groups) => groups.filter((group) => group.test(text)).length >= cuesNeeded) &&
    !person.test(text);
  return {
    settling(transcript) {
      const text = searched(transcript);
      // This must be checked first, because call screeners say "after the tone" too, and a person
      // may still pick up.
      if (callScreening.test(text)) return 'call-screening';
      return voicemail.test(text) || isRecorded(text) ? 'voicemail-phrase' : undefined;
    },
    asksForHelp: (transcript) => asksForHelp.test(searched(transcript)),
  };
}

function searched(transcript: string): string {
  return ` ${uncontracted(transcript.slice(-latestCharacters))} `;
}

function patternOf(phrases: readonly string[], after = ''): RegExp {
  // This pattern never matches.
  if (phrases.length === 0) return /(?!)/;
  return new RegExp(` (?:${phrases.map(exactly).join('|')})${after}`);
}

function exactly(phrase: string): string {
  return phrase
    .split('…')
    .map((part) => `${uncontracted(part)} `)
    .join(gap);
}
