// Joins a recogniser's results into one text. Final results stay, and each interim result is
// replaced by the next result. The text is always bounded, and valid in JSON and SQL, no matter
// what the provider sends.

import type { Said } from './protocol.ts';

/**
 * Bounded because every later event of the call may carry this text. A one-minute greeting has
 * about a thousand characters.
 */
const maxTextCharacters = 2_000;
/**
 * Usual latency of a streaming recogniser, assumed for results that don't say how far the
 * recogniser has listened.
 */
const usualLatencyMs = 300;

export type Transcript = {
  /**
   * `sentMs` is how much audio we sent to the recogniser, which can't have heard more than that.
   */
  hear(said: Said, sentMs: number): void;
  readonly text: string;
  readonly heardUntilMs: number;
};

export function createTranscript(): Transcript {
  let settled = '';
  let interim = '';
  let heardUntilMs = 0;
  return {
    hear(said, sentMs) {
      const text = clean(said.transcript);
      if (said.isFinal) {
        settled = joined(settled, text);
        interim = '';
      } else {
        interim = text;
      }
      const untilMs = Math.min(said.untilMs ?? sentMs - usualLatencyMs, sentMs);
      heardUntilMs = Math.max(heardUntilMs, untilMs);
    },
    get text() {
      return joined(settled, interim);
    },
    get heardUntilMs() {
      return heardUntilMs;
    },
  };
}

function joined(before: string, after: string): string {
  return before === '' ? after : `${before} ${after}`.trim().slice(0, maxTextCharacters);
}

/** PostgreSQL's JSON allows neither NUL nor half of a surrogate pair. */
function clean(text: string): string {
  return text
    .slice(0, maxTextCharacters)
    .replaceAll(/[\p{Cc}\p{Cs}]/gu, ' ')
    .trim();
}
