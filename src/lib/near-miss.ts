// Tells a mistyped name from a foreign one. Both mistakes cost: a typo that passes does nothing, in
// silence; a foreign name that is refused breaks a client that sends it on purpose.

/** Longer names are nobody's typo. */
const longestName = 64;

/** The known names that `name` is most like, or none if it is one of them or like none of them. */
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

/** 0: only the spelling or the unit differs. Undefined: these are two names. */
function distanceBetween(given: readonly string[], meant: readonly string[]): number | undefined {
  if (isSame(given, meant) || isOnlyTheUnitWrong(given.join(''), meant.join(''))) return 0;
  const most = mostEdits(meant.length);
  if (Math.abs(given.length - meant.length) > most || isLongerName(given, meant)) return undefined;
  const edits = editsBetween(given, meant);
  if (edits > most) return undefined;
  // Two typos seldom hit the first letter: `ttsLanguage` is not `sttLanguage`.
  if (edits > 1 && given[0] !== meant[0]) return undefined;
  return meant.length >= shortestFree || isTypoOfShort(given, meant) ? edits : undefined;
}

/** `machine_detection_url`: a word behind the known name, and not a slip of the finger. */
function isLongerName(given: readonly string[], meant: readonly string[]): boolean {
  return given.length > meant.length + 1 && isSame(given.slice(0, meant.length), meant);
}

/** One letter in five, three at most. */
function mostEdits(length: number): number {
  return Math.min(3, Math.max(1, Math.floor(length / 5)));
}

/** Below, one letter more or less makes another word. */
const shortestFree = 5;

/** `lopp` or `looop` for `loop`, but not `model` for `mode`. Typos of shorter names are words. */
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

/** `timeout`, `timeoutMs` or `timeoutSeconds` for `timeoutInMs`. */
function isOnlyTheUnitWrong(given: string, meant: string): boolean {
  if (!meant.endsWith('ms')) return false;
  const quantity = meant.replace(unit, '');
  return given === quantity || given.replace(unit, '') === quantity;
}

/** Another case, `_` and `-` make no other name. */
function lettersOf(name: string): readonly string[] {
  return Array.from(name.replaceAll(/[_-]/g, ''), (letter) => letter.toLowerCase());
}

/** Insertions, deletions, substitutions, and swaps of neighbours (optimal string alignment). */
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

/** Infinity outside the table. */
function at(row: readonly number[], column: number): number {
  return row[column] ?? Number.POSITIVE_INFINITY;
}
