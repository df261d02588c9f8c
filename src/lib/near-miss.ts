// Distinguishes a mistyped name from a name that belongs to another system. Both errors cost
// something: an accepted typo silently has no effect, and refusing a foreign name breaks a client
// that sends it on purpose.

/** Longer names are never taken for typos. */
const longestName = 64;

/**
 * Returns the known names that `name` resembles most, or an empty list if `name` is a known name or
 * resembles none of them.
 */
export function nearMisses(name: string, known: Iterable<string>): readonly string[] {
  if (name.length > longestName) return [];
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

/** Returns 0 if only the spelling or the unit differs, and undefined if the names are unrelated. */
function distanceBetween(given: readonly string[], meant: readonly string[]): number | undefined {
  if (isSame(given, meant) || isOnlyTheUnitWrong(given.join(''), meant.join(''))) return 0;
  const most = maxEdits(meant.length);
  if (Math.abs(given.length - meant.length) > most || isLongerName(given, meant)) return undefined;
  const edits = editsBetween(given, meant);
  if (edits > most) return undefined;
  // Several typos seldom include the first letter: `ttsLanguage` is not a typo of `sttLanguage`.
  if (edits > 1 && given[0] !== meant[0]) return undefined;
  return meant.length >= shortestFree || isTypoOfShort(given, meant) ? edits : undefined;
}

/**
 * Returns true if `given` is the known name followed by another word, as in
 * `machine_detection_url`. That is not a typo.
 */
function isLongerName(given: readonly string[], meant: readonly string[]): boolean {
  return given.length > meant.length + 1 && isSame(given.slice(0, meant.length), meant);
}

/** Allows one edit per five letters: at least one, at most three. */
function maxEdits(length: number): number {
  return Math.min(3, Math.max(1, Math.floor(length / 5)));
}

/** A name shorter than this becomes another word with one letter more or less. */
const shortestFree = 5;

/**
 * Returns true for `lopp` or `looop` instead of `loop`, but not for `model` instead of `mode`.
 * Names below four letters have no typos, because a changed letter usually makes another word.
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

/** Returns true for `timeout`, `timeoutMs` or `timeoutSeconds` instead of `timeoutInMs`. */
function isOnlyTheUnitWrong(given: string, meant: string): boolean {
  if (!meant.endsWith('ms')) return false;
  const quantity = meant.replace(unit, '');
  return given === quantity || given.replace(unit, '') === quantity;
}

/** Ignores case, `_` and `-`: names that differ only in these count as the same name. */
function lettersOf(name: string): readonly string[] {
  return Array.from(name.replaceAll(/[_-]/g, ''), (letter) => letter.toLowerCase());
}

/**
 * Counts insertions, deletions, substitutions and swaps of neighbours (optimal string alignment).
 */
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
