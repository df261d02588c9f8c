// Reads ids that users type. The first characters of an id are enough, with or without `call-` or
// `app-`.

import { minUuidStartLength, startsUuid } from '../lib/ids.ts';

export const uuidLength = 36;

/** The maximum number of ids that we list if several ids start with the typed text. */
export const maxShown = 10;

/**
 * Returns the beginning of an id of this kind, e.g. `call-0d9c` for both `0d9c` and `call-0d9c`.
 *
 * @returns undefined if the text is a complete id or can't be the beginning of one, and `too-short`
 * if the text is too short to identify a call or an app
 */
export function idPrefixOf(kind: 'app' | 'call', text: string) {
  const start = text.startsWith(`${kind}-`) ? text.slice(kind.length + 1) : text;
  const isWhole = start.length === uuidLength && start !== text;
  if (start === '' || isWhole || !startsUuid(start)) return undefined;
  return start.length < minUuidStartLength ? 'too-short' : `${kind}-${start}`;
}

export function tooShortMessage(text: string): string {
  return `"${text}" is too short. Give at least the first ${minUuidStartLength} characters of the id.`;
}

/** Returns the error message for an ambiguous id. `lines` describes the matches, one per line. */
export function ambiguousIdMessage(prefix: string, lines: readonly string[]): string {
  const shown = lines.slice(0, maxShown).map((line) => `\n  ${line}`);
  const more = lines.length > maxShown ? '\n  and more' : '';
  return `Several ids begin with ${prefix}. Type more of the id that you mean:${shown.join('')}${more}`;
}
