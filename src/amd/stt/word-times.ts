// When what a recogniser understood was said: by its own times of the words, or, where it has none, from where the last result ended
// to how far it had listened.

import type { HeardWords } from '../../calls/capture/capture.ts';
import type { Said } from './protocol.ts';

export type WordTimes = {
  /** `heardUntilMs`: how far the recogniser has listened. */
  hear(said: Said, heardUntilMs: number): void;
  /** No more comes: the last interim result stands. */
  end(): void;
};

export function createWordTimes(tell: (words: readonly HeardWords[]) => void): WordTimes {
  let fromMs = 0;
  let interim: readonly HeardWords[] = [];
  return {
    hear(said, heardUntilMs) {
      const words = timesOf(said, fromMs, heardUntilMs);
      // No voice was heard until here.
      if (said.isFinal || words.length === 0) fromMs = Math.max(fromMs, heardUntilMs);
      interim = said.isFinal ? [] : words;
      if (said.isFinal && words.length > 0) tell(words);
    },
    end() {
      if (interim.length > 0) tell(interim);
      interim = [];
    },
  };
}

function timesOf(
  { transcript, words = [] }: Said,
  fromMs: number,
  heardUntilMs: number,
): readonly HeardWords[] {
  const timed = words.length > 0 ? words : [{ text: transcript, fromMs, untilMs: heardUntilMs }];
  return timed
    .map(({ text, ...times }) => ({
      text: text.replaceAll(/[\p{Cc}\p{Cs}]/gu, ' ').trim(),
      // It cannot have heard more.
      fromMs: Math.min(times.fromMs, heardUntilMs),
      untilMs: Math.min(times.untilMs, heardUntilMs),
    }))
    .filter(({ text }) => text !== '');
}
