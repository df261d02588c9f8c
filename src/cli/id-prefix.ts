// Reads ids that people type. The beginning of an id is enough, with or without `call-` or `app-`.

import { shortestUuidStart, startsUuid } from '../lib/ids.ts';

export const uuidLength = 36;

/** How many ids an error lists if several begin with the typed text. */
export const mostShown = 10;

/**
 * Returns the beginning of an id of this kind: `call-0d9c` for `0d9c` and for `call-0d9c`.
 *
 * @returns undefined if the text is a whole id, or if no id can begin with it; `too-short` if the
 *   text has too few characters to identify a call or an app
 */
export function idPrefixOf(kind: 'app' | 'call', text: string) {
  const start = text.startsWith(`${kind}-`) ? text.slice(kind.length + 1) : text;
  const isWhole = start.length === uuidLength && start !== text;
  if (start === '' || isWhole || !startsUuid(start)) return undefined;
  return start.length < shortestUuidStart ? 'too-short' : `${kind}-${start}`;
}

export function tooShortMessage(text: string): string {
  return `"${text}" is too short. Give at least the first ${shortestUuidStart} characters of the id.`;
}

/** Returns the error message for an ambiguous id. `lines` describes the matches, one per line. */
export function ambiguousIdMessage(prefix: string, lines: readonly string[]): string {
  const shown = lines.slice(0, mostShown).map((line) => `\n  ${line}`);
  const more = lines.length > mostShown ? '\n  and more' : '';
  return `Several ids begin with ${prefix}. Type more of the id that you mean:${shown.join('')}${more}`;
}
