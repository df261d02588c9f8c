// Ids as they are typed: the beginning is enough, with or without what stands in front of the UUID.

import { shortestUuidStart, startsUuid } from '../lib/ids.ts';

export const uuidLength = 36;

/** So many are listed where several ids begin alike. */
export const mostShown = 10;

/**
 * The beginning of an id of this kind: `call-0d9c` for `0d9c` and `call-0d9c`.
 *
 * @returns undefined if it is a whole id, or no id begins so; `too-short` if too many would
 */
export function idPrefixOf(kind: 'app' | 'call', text: string) {
  const start = text.startsWith(`${kind}-`) ? text.slice(kind.length + 1) : text;
  const isWhole = start.length === uuidLength && start !== text;
  if (start === '' || isWhole || !startsUuid(start)) return undefined;
  return start.length < shortestUuidStart ? 'too-short' : `${kind}-${start}`;
}

export function tooShort(text: string): string {
  return `"${text}" is too short: give the first ${shortestUuidStart} characters of the id, or more.`;
}

/** `lines`: one for each of those that begin so. */
export function severalBegin(prefix: string, lines: readonly string[]): string {
  const shown = lines.slice(0, mostShown).map((line) => `\n  ${line}`);
  const more = lines.length > mostShown ? '\n  and more' : '';
  return `Several begin with ${prefix}; give more of the one that you mean:${shown.join('')}${more}`;
}
