// Joins a recogniser's results into one text. A final result stays; an interim result is replaced
// by the next result. Whatever a provider sends, the text is bounded and valid in JSON and SQL.

import type { Said } from './protocol.ts';

/**
 * Every later event of the call may carry this text. A greeting of one minute has a thousand
 * characters.
 */
const maxTextCharacters = 2_000;
/**
 * Usual latency of a streaming recogniser. Used for results that do not say how far the recogniser
 * has listened.
 */
const usualLatencyMs = 300;

export type Transcript = {
  /** `sentMs`: how much audio the recogniser received. It cannot have heard more. */
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
