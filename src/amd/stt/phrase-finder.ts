// Looks for the phrases of a language in a transcript.

import type { Phrases } from './phrase-lists.ts';
import { phrasesByLanguage } from './phrases.ts';
import type { SettlingPhrase } from './transcription.ts';
import { plainWords } from './words.ts';

export type PhraseFinder = {
  settling(transcript: string): SettlingPhrase | undefined;
  /** It ends with an offer to help: whoever said it waits. */
  asksForHelp(transcript: string): boolean;
};

/** `…` of a phrase: enough for "your name, your number and a short", too few to join two sentences. */
const gap = '(?:\\S+ ){0,6}?';
/** "… you today", "… my dear": more words are another sentence. */
const ending = '(?:\\S+ ){0,3}$';

export function createPhraseFinder(language: string): PhraseFinder {
  const spoken = tablesOf(language);
  const voicemail = patternOf(spoken.flatMap((table) => table.voicemail));
  const callScreening = patternOf(spoken.flatMap((table) => table.callScreening));
  const asksForHelp = patternOf(
    spoken.flatMap((table) => table.asksForHelp),
    ending,
  );
  return {
    settling(transcript) {
      const text = ` ${plainWords(transcript)} `;
      // It may say "after the tone" as well, but somebody may pick up still.
      if (callScreening.test(text)) return 'call-screening';
      return voicemail.test(text) ? 'voicemail-phrase' : undefined;
    },
    asksForHelp: (transcript) => asksForHelp.test(` ${plainWords(transcript)} `),
  };
}

/** A provider's own name for a language, e.g. `multi`, may mean any. */
function tablesOf(language: string): readonly Phrases[] {
  const base = language.toLowerCase().split(/[-_]/, 1)[0] ?? '';
  const own = Object.hasOwn(phrasesByLanguage, base) ? phrasesByLanguage[base] : undefined;
  if (own !== undefined) return [own];
  return /^[a-z]{2,3}$/.test(base) ? [] : Object.values(phrasesByLanguage);
}

function patternOf(phrases: readonly string[], after = ''): RegExp {
  // Matches nothing where there is none.
  if (phrases.length === 0) return /(?!)/;
  const alternatives = phrases.map((phrase) => phrase.split('…').map(plainWords).join(` ${gap}`));
  return new RegExp(` (?:${alternatives.join('|')}) ${after}`);
}
