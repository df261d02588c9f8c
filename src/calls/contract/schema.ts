// How the contract's schemas become types, and how a value from outside is held against one.

import { z } from 'zod';

/** What was stated is not changed by those who read it. */
export type Immutable<Value> = Value extends (infer Item)[]
  ? readonly Immutable<Item>[]
  : Value extends string | number | boolean | Date | null | undefined
    ? Value
    : Value extends object
      ? { readonly [Key in keyof Value]: Immutable<Value[Key]> }
      : Value;

/**
 * The value itself where it matches, with the members that the schema does not know: a later version may have written
 * them, and a part that passes the value on must not lose them.
 */
export function matching<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
): { readonly ok: true; readonly value: Immutable<z.infer<Schema>> } | Mismatch {
  const { error } = schema.safeParse(value);
  if (error === undefined) return { ok: true, value: value as Immutable<z.infer<Schema>> };
  return { ok: false, reason: z.prettifyError(error).slice(0, 1_000) };
}

/** A wrong member of a request or a command. `path` is dotted, e.g. `timers.noSpeechTimeoutMs`. */
export type MemberError = { readonly path: string; readonly message: string };

export type Mismatch = { readonly ok: false; readonly reason: string };

/** A word of ours. Any text is let pass: a later version may have one more. */
export function wordOf<Word extends string>(words: readonly Word[]): z.ZodType<Word, Word> {
  const description = `one of ${words.map((word) => `\`${word}\``).join(', ')}; later versions may add words`;
  return z.string().min(1).describe(description) as unknown as z.ZodType<Word, Word>;
}

export const instant = z.iso.datetime({ offset: true });
export const durationMs = z.number().min(0);
/** 1, 2, … */
export const sequence = z.number().int().min(1);
