// Checks the patterns of a trunk's rewrite rules. A pattern is a JavaScript regular expression that
// we restrict to what numbers need, so that no value makes it run for long: the matcher tries one
// way after another, and the number of ways is bounded before the pattern is used.

/** RFC 3261 users are longer than any number. `isSipUser` has the same bound. */
export const maxValueLength = 128;

/**
 * Enough for two unbounded repetitions (129² ways), which covers prefixes and suffixes around a
 * part that is kept. Trying all ways takes a few milliseconds.
 */
const maxWays = 20_000;

/** `$1` to `$9` name the groups in a replacement. */
const maxGroups = 9;

export type PatternCheck =
  | { readonly ok: true; readonly groups: number }
  | { readonly ok: false; readonly message: string };

/** How a part of the pattern matches. */
type Part = {
  /** Upper bound for the number of ways in which the part can match at one place. */
  readonly ways: number;
  /** Length of the shortest text that it matches. */
  readonly length: number;
};

const single: Part = { ways: 1, length: 1 };
const empty: Part = { ways: 1, length: 0 };

export function checkPattern(pattern: string): PatternCheck {
  try {
    new RegExp(anchored(pattern), 'u');
    const reader = new PatternReader(pattern);
    const { ways, length } = reader.readAll();
    if (ways > maxWays) return refuse('could take too long: use fewer or shorter repetitions');
    if (length > maxValueLength) {
      return refuse(`matches nothing: values have at most ${maxValueLength} characters`);
    }
    if (reader.groups > maxGroups) return refuse(`must have at most ${maxGroups} groups`);
    return { ok: true, groups: reader.groups };
  } catch (error) {
    if (error instanceof UnsupportedError) return refuse(error.message);
    if (error instanceof SyntaxError) return refuse('is not a valid regular expression');
    throw error;
  }
}

/** The pattern must match the whole value. */
export function anchored(pattern: string): string {
  return `^(?:${pattern})$`;
}

function refuse(message: string): PatternCheck {
  return { ok: false, message };
}

class UnsupportedError extends Error {}

/** Reads a pattern that is a valid regular expression. Recursive descent, one level per group. */
class PatternReader {
  readonly #pattern: string;
  #at = 0;
  groups = 0;

  constructor(pattern: string) {
    this.#pattern = pattern;
  }

  /** @throws UnsupportedError */
  readAll(): Part {
    const part = this.#alternatives();
    // A `)` without its `(` would end the anchors' group.
    if (this.#at < this.#pattern.length) throw new UnsupportedError('has a ) without its (');
    return part;
  }

  #alternatives(): Part {
    let sum = this.#sequence();
    while (this.#skip('|')) {
      const { ways, length } = this.#sequence();
      sum = { ways: sum.ways + ways, length: Math.min(sum.length, length) };
    }
    return sum;
  }

  #sequence(): Part {
    let sequence = empty;
    while (this.#at < this.#pattern.length && !/[|)]/.test(this.#pattern.charAt(this.#at))) {
      const { ways, length } = this.#repeated(this.#atom());
      sequence = { ways: sequence.ways * ways, length: sequence.length + length };
    }
    return sequence;
  }

  #atom(): Part {
    if (this.#skip('(')) return this.#group();
    if (this.#skip('[')) return this.#characterClass();
    if (this.#skip('\\')) return this.#escape();
    const isAnchor = this.#skip('^') || this.#skip('$');
    if (!isAnchor) this.#at += 1;
    return isAnchor ? empty : single;
  }

  #group(): Part {
    if (!this.#skip('?:')) {
      if (this.#skip('?')) throw new UnsupportedError('may only have the groups (…) and (?:…)');
      this.groups += 1;
    }
    const part = this.#alternatives();
    this.#skip(')');
    return part;
  }

  #characterClass(): Part {
    while (this.#at < this.#pattern.length && !this.#skip(']')) {
      if (this.#skip('\\')) this.#escape();
      else this.#at += 1;
    }
    return single;
  }

  #escape(): Part {
    const escaped = this.#pattern.charAt(this.#at);
    this.#at += 1;
    if (/[a-z0-9]/i.test(escaped) && !/[dw]/i.test(escaped)) {
      throw new UnsupportedError(`may not contain \\${escaped}: write \\d, \\w or the character`);
    }
    return single;
  }

  #repeated(part: Part): Part {
    const text = /^(?:[*+?]|\{\d+(?:,\d*)?\})\??/.exec(this.#pattern.slice(this.#at))?.[0];
    if (text === undefined) return part;
    this.#at += text.length;
    const [from, to] = timesOf(text);
    if (from > maxValueLength || (to > maxValueLength && to !== Number.POSITIVE_INFINITY)) {
      throw new UnsupportedError(`may repeat a part at most ${maxValueLength} times`);
    }
    return {
      ways: waysOf(part.ways, from, Math.min(to, maxValueLength)),
      length: part.length * from,
    };
  }

  #skip(text: string): boolean {
    const isThere = this.#pattern.startsWith(text, this.#at);
    if (isThere) this.#at += text.length;
    return isThere;
  }
}

function timesOf(quantifier: string): readonly [number, number] {
  if (quantifier.startsWith('*')) return [0, Number.POSITIVE_INFINITY];
  if (quantifier.startsWith('+')) return [1, Number.POSITIVE_INFINITY];
  if (quantifier.startsWith('?')) return [0, 1];
  const [, from = '', comma, to = ''] = /^\{(\d+)(,)?(\d*)\}/.exec(quantifier) ?? [];
  if (comma === undefined) return [Number(from), Number(from)];
  return [Number(from), to === '' ? Number.POSITIVE_INFINITY : Number(to)];
}

/** Returns the sum of `ways` to the powers `from` to `to`. Overflows to Infinity. */
function waysOf(ways: number, from: number, to: number): number {
  let sum = 0;
  for (let times = from; times <= to; times += 1) sum += ways ** times;
  return sum;
}
