// Puts a recogniser's results together: what is final stays, an interim result is replaced by the next one. Bounded, and
// clean enough for JSON and for SQL, whatever a provider sends.

import type { Said } from './protocol.ts';

/** Travels in every later event of the call; a greeting of a minute has a thousand characters. */
const longestText = 2_000;
/** Where a result does not say how far it has listened: what a streaming recogniser commonly takes. */
const usualLatencyMs = 300;

export type Transcript = {
  /** `sentMs`: how much audio the recogniser was given; it cannot have heard more. */
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
  return before === '' ? after : `${before} ${after}`.trim().slice(0, longestText);
}

/** PostgreSQL's JSON knows no NUL and no half of a surrogate pair. */
function clean(text: string): string {
  return text
    .slice(0, longestText)
    .replaceAll(/[\p{Cc}\p{Cs}]/gu, ' ')
    .trim();
}
