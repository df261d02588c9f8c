// Counts words in any language and normalises texts for comparison. ICU splits the text into words,
// which works even for languages that are written without spaces.

export type WordCounter = (text: string) => number;

export function createWordCounter(language: string): WordCounter {
  const segmenter = new Intl.Segmenter(knownLocale(language), { granularity: 'word' });
  return (text) => {
    let words = 0;
    for (const { isWordLike } of segmenter.segment(text)) if (isWordLike === true) words += 1;
    return words;
  };
}

/**
 * Providers have language names of their own, e.g. `multi`, which Intl may reject. For those,
 * returns undefined.
 */
function knownLocale(language: string): string | undefined {
  try {
    return Intl.getCanonicalLocales(language)[0];
  } catch {
    return undefined;
  }
}

/**
 * Combining accents that don't belong to any particular script. Vowel signs, e.g. in Devanagari,
 * are combining marks too, but they belong to their script and are part of the word.
 */
const accents = /\p{Script=Inherited}/gu;

/**
 * Returns the text in lower case, without accents or punctuation, and with single spaces between
 * words.
 */
export function plainWords(text: string): string {
  return text
    .normalize('NFKD')
    .replaceAll(accents, '')
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{M}\p{N}]+/gu, ' ')
    .trim();
}

/**
 * Written-out forms of English contractions. Recognisers may write "you're" or "you are", no matter
 * which of them was spoken.
 */
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
