// Counts words in any language, also in those that write none apart (ICU knows them), and makes texts comparable.

export type WordCounter = (text: string) => number;

export function createWordCounter(language: string): WordCounter {
  const segmenter = new Intl.Segmenter(knownLocale(language), { granularity: 'word' });
  return (text) => {
    let words = 0;
    for (const { isWordLike } of segmenter.segment(text)) if (isWordLike === true) words += 1;
    return words;
  };
}

/** Providers have names of their own for languages, e.g. `multi`; those that are no locale at all throw. */
function knownLocale(language: string): string | undefined {
  try {
    return Intl.getCanonicalLocales(language)[0];
  } catch {
    return undefined;
  }
}

/** No vowel signs: in Devanagari and its like those are marks too, of their own script, and part of the word. */
const accents = /\p{Script=Inherited}/gu;

/** Lower case, without accents and punctuation, words apart by one space. */
export function plainWords(text: string): string {
  return text
    .normalize('NFKD')
    .replaceAll(accents, '')
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{M}\p{N}]+/gu, ' ')
    .trim();
}

/** English as it is written out: recognisers write "you're" and "you are", whichever was said. */
const contractions: readonly (readonly [RegExp, string])[] = [
  [/\b(you|we|they) re\b/g, '$1 are'],
  [/\bi m\b/g, 'i am'],
  [/\b(i|you|we|they) ve\b/g, '$1 have'],
  [/\b(who|he|she) s\b/g, '$1 is'],
  [/\bcan (?:t|not)\b/g, 'cannot'],
];

export function uncontracted(text: string): string {
  return contractions.reduce(
    (written, [contraction, words]) => written.replaceAll(contraction, words),
    plainWords(text),
  );
}
