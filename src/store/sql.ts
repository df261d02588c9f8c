// Statements that are put together from parts: filters that were asked for, columns that are wanted. Their text comes from the
// program alone, because only `sql` makes it; what is put into it is a parameter, or a part that was made in the same way.
// `pg` takes them as they are: `pool.query(sql`select … where id = ${id}`)`. A statement that is always the same is a string.

/** Not undefined, which `pg` would take for null. */
type Value = string | number | boolean | Date | Buffer | readonly string[] | null;

class Sql {
  readonly text: string;
  readonly values: Value[];
  /** One more than there are values, which stand between them. */
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

/** All of them hold; those that are undefined were not asked for. */
export function all(conditions: readonly (Sql | undefined)[]): Sql {
  const asked = conditions.filter((condition) => condition !== undefined);
  // In parentheses, so that an `or` in one of them does not undo another.
  return asked.length === 0
    ? sql`true`
    : joined(
        asked.map((one) => sql`(${one})`),
        ' and ',
      );
}
