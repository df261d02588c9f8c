// Distinguishes a mistyped name from a name that belongs to a different system. A mistake is bad
// either way. If we accept a typo, the setting silently does nothing, and if we reject a foreign
// name, we break a client that sends the name on purpose.

/** Longer names are never treated as typos. */
const maxNameLength = 64;

/**
 * Returns the known names closest to `name`. The list is empty if `name` is itself known or doesn't
 * resemble any of them.
 */
export function nearMisses(name: string, known: Iterable<string>): readonly string[] {
  if (name.length > maxNameLength) return [];
  const letters = lettersOf(name);
  let nearest = Number.POSITIVE_INFINITY;
  let names: string[] = [];
  for (const each of known) {
    if (each === name) return [];
    const distance = distanceBetween(letters, lettersOf(each));
    if (distance === undefined || distance > nearest) continue;
    names = distance < nearest ? [each] : [...names, each];
    nearest = distance;
  }
  return names;
}

/**
 * Returns 0 if the names differ only in case, separators or the unit, and undefined if they are
 * unrelated.
 */
function distanceBetween(given: readonly string[], meant: readonly string[]): number | undefined {
  if (isSame(given, meant) || isOnlyTheUnitWrong(given.join(''), meant.join(''))) return 0;
  const limit = maxEdits(meant.length);
  if (Math.abs(given.length - meant.length) > limit || isLongerName(given, meant)) return undefined;
  const edits = editsBetween(given, meant);
  if (edits > limit) return undefined;
  // People rarely mistype the first letter along with others: `ttsLanguage` isn't a typo of
  // `sttLanguage`.
  if (edits > 1 && given[0] !== meant[0]) return undefined;
  return meant.length >= minFreeLength || isTypoOfShort(given, meant) ? edits : undefined;
}

/**
 * Returns true if `given` is the known name plus another word, as in `machine_detection_url`. We
 * don't treat such a name as a typo.
 */
function isLongerName(given: readonly string[], meant: readonly string[]): boolean {
  return given.length > meant.length + 1 && isSame(given.slice(0, meant.length), meant);
}

/** We allow one edit per five letters, but at least one and at most three. */
function maxEdits(length: number): number {
  return Math.min(3, Math.max(1, Math.floor(length / 5)));
}

/** Below this length, adding or dropping a letter usually makes a different word. */
const minFreeLength = 5;

/**
 * Returns true for `lopp` or `looop` instead of `loop`, but not for `model` instead of `mode`. We
 * don't look for typos below four letters, because changing a letter usually makes another word.
 */
function isTypoOfShort(given: readonly string[], meant: readonly string[]): boolean {
  if (meant.length < 4) return false;
  if (isSame(withoutRepeats(given), withoutRepeats(meant))) return true;
  return given.length === meant.length && given[0] === meant[0];
}

function withoutRepeats(letters: readonly string[]): readonly string[] {
  return letters.filter((letter, index) => letter !== letters[index - 1]);
}

function isSame(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((letter, index) => letter === other[index]);
}

const unit = /(?:in)?(?:m?s|m?secs?|millis|(?:milli)?seconds?|mins?|minutes?)$/;

/** Recognises `timeout`, `timeoutMs` or `timeoutSeconds` as `timeoutInMs`. */
function isOnlyTheUnitWrong(given: string, meant: string): boolean {
  if (!meant.endsWith('ms')) return false;
  const quantity = meant.replace(unit, '');
  return given === quantity || given.replace(unit, '') === quantity;
}

/** Normalises case and removes `_` and `-`, so these don't matter in a comparison. */
function lettersOf(name: string): readonly string[] {
  return Array.from(name.replaceAll(/[_-]/g, ''), (letter) => letter.toLowerCase());
}

/** Optimal string alignment: insertions, deletions, substitutions and swaps of neighbours. */
function editsBetween(one: readonly string[], other: readonly string[]): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let row = 1; row <= one.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= other.length; column += 1) {
      const isEqual = one[row - 1] === other[column - 1];
      const isSwap = one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1];
      current[column] = Math.min(
        at(last, column) + 1,
        at(current, column - 1) + 1,
        at(last, column - 1) + (isEqual ? 0 : 1),
        isSwap ? at(beforeLast, column - 2) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    [beforeLast, last] = [last, current];
  }
  return at(last, other.length);
}

/** Returns Infinity outside the table. */
function at(row: readonly number[], column: number): number {
  return row[column] ?? Number.POSITIVE_INFINITY;
}
