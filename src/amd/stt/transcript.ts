// Joins a recogniser's results into one text. Final results are kept, whereas an interim result is
// replaced by the next result. No matter what the provider sends, the text is bounded, and can be
// stored as JSON in PostgreSQL.

import type { Said } from './protocol.ts';

/**
 * Bounded because this text may be repeated in each of the call's later events. A one-minute
 * greeting has about a thousand characters.
 */
const maxTextCharacters = 2_000;
/**
 * Usual latency of a streaming recogniser. We assume this latency if a result doesn't say how far
 * the recogniser has listened.
 */
const usualLatencyMs = 300;

export type Transcript = {
  /** `sentMs` is the length of the audio that we've sent. The recogniser can't have heard more. */
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

/** JSON in PostgreSQL can't contain NUL or half of a surrogate pair. */
function clean(text: string): string {
  return text
    .slice(0, maxTextCharacters)
    .replaceAll(/[\p{Cc}\p{Cs}]/gu, ' ')
    .trim();
}
