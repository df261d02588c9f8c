// Finds a language's phrases in a transcript. Changing a single word turns many short phrases into
// something that people say, so these must match exactly. In a long phrase, one word may be wrong.

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
/** A recogniser may well mishear a person's sentence as three words of a recording. */
const cueWordsNeeded = 4;
/** Shorter phrases become something else if one of their words is replaced. */
const minMisheardWords = 7;
/** Stands for another word, or for none. */
const oneMisheard = '(?:\\S+ )?';
/** People say the opposite of these phrases: "I can come to the phone". */
const denials: ReadonlySet<string> = new Set(
  'not cannot no nicht kein keine ne n pas no non nao nie ne не niet inte ei en'.split(' '),
);
// Placeholders for `#` and `*`, which consist of letters because everything else is removed.
const digitWord = 'xdigitx';
const anyWord = 'xanywordx';
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
  const tables = spoken.map(createTableFinder);
  return {
    settling(transcript) {
      const text = searched(transcript);
      const isStart = transcript.length <= latestCharacters;
      // This must be checked first, because call screeners say "after the tone" too, and a person
      // may still pick up.
      if (tables.some((table) => table.isCallScreening(text, isStart))) return 'call-screening';
      const isVoicemail = tables.some((table) => table.isVoicemail(text, isStart));
      return isVoicemail ? 'voicemail-phrase' : undefined;
    },
    asksForHelp(transcript) {
      const text = searched(transcript);
      return tables.some((table) => table.asksForHelp(text));
    },
  };
}

type TableFinder = {
  /** `isStart` means that the text begins with the first words of the call. */
  isVoicemail(text: string, isStart: boolean): boolean;
  isCallScreening(text: string, isStart: boolean): boolean;
  asksForHelp(text: string): boolean;
};

function createTableFinder(table: Phrases): TableFinder {
  const pattern = (phrases: readonly string[] = [], around: Around = {}) =>
    patternOf(phrases, digitsOf(table), around);
  const person = pattern([...(table.saidBesideCues ?? []), ...table.asksForHelp]);
  const isPerson = (text: string) => person.test(text);
  const settling = (kind: 'voicemail' | 'callScreening') => {
    const exact = pattern(table[kind]);
    const first = pattern(table[`${kind}First`], { before: '^' });
    const misheard = pattern(table[kind].flatMap(misheardForms));
    return (text: string, isStart: boolean) =>
      exact.test(text) || (isStart && first.test(text)) || (misheard.test(text) && !isPerson(text));
  };
  const isVoicemail = settling('voicemail');
  const cues = (table.cues ?? []).map((group) => pattern(group));
  const isRecorded = (text: string) =>
    areEnough(cues.map((cue) => cue.exec(text))) && !isPerson(text);
  const asksForHelp = pattern(table.asksForHelp, { after: ending });
  return {
    isVoicemail: (text, isStart) => isVoicemail(text, isStart) || isRecorded(text),
    isCallScreening: settling('callScreening'),
    asksForHelp: (text) => asksForHelp.test(text),
  };
}

function areEnough(matches: readonly (RegExpExecArray | null)[]): boolean {
  const found = matches.flatMap((match) => (match === null ? [] : [match[0].trim()]));
  return found.length >= cuesNeeded && found.join(' ').split(' ').length >= cueWordsNeeded;
}

function searched(transcript: string): string {
  return ` ${uncontracted(transcript.slice(-latestCharacters))} `;
}

function digitsOf({ digits = [] }: Phrases): string {
  return `(?:${['[0-9]', ...digits.map(uncontracted)].join('|')})`;
}

type Around = { readonly before?: string; readonly after?: string };

function patternOf(
  phrases: readonly string[],
  digits: string,
  { before = '', after = '' }: Around,
): RegExp {
  // This pattern never matches.
  if (phrases.length === 0) return /(?!)/;
  const written = phrases.map((phrase) => exactly(phrase, digits)).join('|');
  return new RegExp(`${before} (?:${written})${after}`);
}

function exactly(phrase: string, digits: string): string {
  return phrase
    .split('…')
    .map((part) => `${uncontracted(part.replaceAll('#', digitWord).replaceAll('*', anyWord))} `)
    .join(gap)
    .replaceAll(digitWord, digits)
    .replaceAll(`${anyWord} `, oneMisheard);
}

/**
 * Returns the forms of a long phrase in which one word was misheard or left out. It isn't the first
 * word, the last word, or one that denies something.
 */
function misheardForms(phrase: string): string[] {
  const words = uncontracted(phrase).split(' ');
  if (/[…#]/.test(phrase) || words.length < minMisheardWords) return [];
  return words.slice(1, -1).flatMap((word, index) => {
    if (denials.has(word)) return [];
    return [[...words.slice(0, index + 1), '*', ...words.slice(index + 2)].join(' ')];
  });
}
