// Looks for the phrases of a language in a transcript, each as it stands: with one word another, many are what people say.

import type { Phrases } from './phrase-lists.ts';
import { phrasesByLanguage } from './phrases.ts';
import type { SettlingPhrase } from './transcription.ts';
import { uncontracted } from './words.ts';

export type PhraseFinder = {
  settling(transcript: string): SettlingPhrase | undefined;
  /** It ends with an offer to help: the speaker waits. */
  asksForHelp(transcript: string): boolean;
};

/** `…` of a phrase: enough for "your name, your number and a short", too few to join two sentences. */
const gap = '(?:\\S+ ){0,6}?';
/** "… you today", "… my dear": more words are another sentence. */
const ending = '(?:\\S+ ){0,3}$';
/** Of the text, its end: what was before was looked at when it came. */
const latestCharacters = 500;

/** One for each language and one for all: patterns take some milliseconds to be made, too long while calls are up. */
const finders = new Map<string, PhraseFinder>();

export function phraseFinder(language: string): PhraseFinder {
  const base = language.toLowerCase().split(/[-_]/, 1)[0] ?? '';
  const isListed = Object.hasOwn(phrasesByLanguage, base);
  // A provider's own name for a language, e.g. `multi`, may mean any; other languages have no phrases.
  const key = isListed ? base : /^[a-z]{2,3}$/.test(base) ? 'none' : 'any';
  const finder = finders.get(key) ?? createPhraseFinder(tablesOf(key));
  finders.set(key, finder);
  return finder;
}

/** Makes all there are, and uses each once. */
export function readyPhraseFinders(): void {
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
  const all = (kind: keyof Phrases) => spoken.flatMap((table) => table[kind]);
  const voicemail = patternOf(all('voicemail'));
  const callScreening = patternOf(all('callScreening'));
  const asksForHelp = patternOf(all('asksForHelp'), ending);
  return {
    settling(transcript) {
      const text = searched(transcript);
      // It may say "after the tone" as well, but a person may pick up still.
      if (callScreening.test(text)) return 'call-screening';
      return voicemail.test(text) ? 'voicemail-phrase' : undefined;
    },
    asksForHelp: (transcript) => asksForHelp.test(searched(transcript)),
  };
}

function searched(transcript: string): string {
  return ` ${uncontracted(transcript.slice(-latestCharacters))} `;
}

function patternOf(phrases: readonly string[], after = ''): RegExp {
  // Matches nothing where there is none.
  if (phrases.length === 0) return /(?!)/;
  return new RegExp(` (?:${phrases.map(exactly).join('|')})${after}`);
}

function exactly(phrase: string): string {
  return phrase
    .split('…')
    .map((part) => `${uncontracted(part)} `)
    .join(gap);
}
