// Word errors as recognisers make them, from a seed: of ten six are other words, two and a half are left out, one and a half are
// words that were not said. What is heard instead is any word of the corpus in the same language, a machine's or a person's.

import type { Random } from '../../amd/made-up-audio.ts';
import type { SpokenWord } from './spoken.ts';

const substituted = 0.6;
const deleted = 0.85;

export type HeardWord = SpokenWord & {
  /** While it is the newest word of an interim result: as likely wrong again. */
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
