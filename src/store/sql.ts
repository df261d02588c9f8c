// Builds statements from parts, for optional filters and selected columns. Their text comes only
// from the program, because only `sql` makes it. Each inserted value becomes a parameter, unless it
// is a part that `sql` made. `pg` accepts the result as it is: `pool.query(sql`select … where id =
// ${id}`)`. A statement that never varies is a plain string.

/** A parameter. Undefined is excluded because `pg` would send it as null. */
type Value = string | number | boolean | Date | Buffer | readonly string[] | null;

class Sql {
  readonly text: string;
  readonly values: Value[];
  /** The texts around the values: one more than there are values. */
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

/** Joins conditions with `and`. Undefined entries are filters that the caller omitted. */
export function all(conditions: readonly (Sql | undefined)[]): Sql {
  const asked = conditions.filter((condition) => condition !== undefined);
  // Parentheses keep an `or` in one condition from changing another.
  return asked.length === 0
    ? sql`true`
    : joined(
        asked.map((one) => sql`(${one})`),
        ' and ',
      );
}
