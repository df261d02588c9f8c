// Builds statements from parts, e.g. for optional filters and selected columns. User input can't
// end up in a statement's text, because only `sql` makes parts. Any other inserted value becomes a
// parameter. You can pass the result to `pg` directly: `pool.query(sql`select … where id =
// ${id}`)`. Use a plain string for a statement that never varies.

/** A parameter. We exclude undefined because `pg` would send it as null. */
type Value = string | number | boolean | Date | Buffer | readonly string[] | null;

class Sql {
  readonly text: string;
  readonly values: Value[];
  /** The texts around the values. There is one more text than there are values. */
  readonly #texts: readonly string[];

  constructor(texts: readonly string[], parts: readonly (Sql | Value)[]) {
    const flat = [texts[0] ?? ''];
    const append = (text = ''): void => {
      flat.push(`${flat.pop() ?? ''}${text}`);
    };
    for (const [index, part] of parts.entries()) {
      if (part instanceof Sql) {
        append(part.#texts[0]);
        flat.push(...part.#texts.slice(1));
        append(texts[index + 1]);
      } else flat.push(texts[index + 1] ?? '');
    }
    this.#texts = flat;
    this.text = flat.reduce((text, next, index) => `${text}$${index}${next}`);
    this.values = parts.flatMap((part) => (part instanceof Sql ? part.values : [part]));
  }
}

export type { Sql };

export function sql(texts: TemplateStringsArray, ...parts: readonly (Sql | Value)[]): Sql {
  return new Sql(texts, parts);
}

export function joined(parts: readonly Sql[], separator: ', ' | ' + ' | ' and '): Sql {
  return new Sql(['', ...parts.slice(1).map(() => separator), ''], parts);
}

/** Joins conditions with `and`. Undefined entries (filters that the caller omitted) are skipped. */
export function all(conditions: readonly (Sql | undefined)[]): Sql {
  const asked = conditions.filter((condition) => condition !== undefined);
  // The parentheses keep an `or` in one condition from affecting the others.
  return asked.length === 0
    ? sql`true`
    : joined(
        asked.map((one) => sql`(${one})`),
        ' and ',
      );
}
