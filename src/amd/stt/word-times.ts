// Works out when the recognised words were spoken. If the recogniser doesn't send word times, we
// assume that a result's words were spoken between the end of the previous result and the point up
// to which the recogniser has listened.

import type { HeardWords } from '../../calls/capture/capture.ts';
import type { Said } from './protocol.ts';

export type WordTimes = {
  /** `heardUntilMs` is the point up to which the recogniser has listened. */
  hear(said: Said, heardUntilMs: number): void;
  /** Ends the stream of results, and reports the last interim result as if it were final. */
  end(): void;
};

export function createWordTimes(report: (words: readonly HeardWords[]) => void): WordTimes {
  let fromMs = 0;
  let interim: readonly HeardWords[] = [];
  return {
    hear(said, heardUntilMs) {
      const words = timesOf(said, fromMs, heardUntilMs);
      // Nobody has spoken before this point.
      if (said.isFinal || words.length === 0) fromMs = Math.max(fromMs, heardUntilMs);
      interim = said.isFinal ? [] : words;
      if (said.isFinal && words.length > 0) report(words);
    },
    end() {
      if (interim.length > 0) report(interim);
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
      // The recogniser can't have listened any further than this.
      fromMs: Math.min(times.fromMs, heardUntilMs),
      untilMs: Math.min(times.untilMs, heardUntilMs),
    }))
    .filter(({ text }) => text !== '');
}
