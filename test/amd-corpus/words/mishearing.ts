// Word errors as recognisers make them, from a seed. Six of ten errors are other words, two and a
// half are left out, and one and a half are words that were not said. The wrong words are any words
// of the corpus in the same language, of machines or of people.

import type { Random } from '../../amd/made-up-audio.ts';
import type { SpokenWord } from './spoken.ts';

const substituted = 0.6;
const deleted = 0.85;

export type HeardWord = SpokenWord & {
  /**
   * The text while the word is the newest one of an interim result. It is as likely to be wrong as
   * the final text.
   */
  readonly atFirst: string;
};

export function misheard(
  words: readonly SpokenWord[],
  { share, random, vocabulary }: { share: number; random: Random; vocabulary: readonly string[] },
): readonly HeardWord[] {
  const another = () => vocabulary[Math.floor(random() * vocabulary.length)] ?? 'uh';
  const final = words.flatMap((word) => {
    if (random() >= share) return [word];
    const kind = random();
    if (kind < substituted) return [{ ...word, text: another() }];
    if (kind < deleted) return [];
    return [word, { ...word, fromMs: word.untilMs, text: another() }];
  });
  return final.map((word) => ({ ...word, atFirst: random() < share ? another() : word.text }));
}
