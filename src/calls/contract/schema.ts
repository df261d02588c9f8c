// Derives types from the contract's schemas, and checks values from outside against a schema.

import { z } from 'zod';

/** Makes all fields read-only at every depth, because readers of an event must not change it. */
export type Immutable<Value> = Value extends (infer Item)[]
  ? readonly Immutable<Item>[]
  : Value extends string | number | boolean | Date | null | undefined
    ? Value
    : Value extends object
      ? { readonly [Key in keyof Value]: Immutable<Value[Key]> }
      : Value;

/**
 * Checks a value against a schema. On a match, this returns the value itself, including fields that
 * aren't in the schema. Such fields may come from a later version, and code that passes the value
 * on must not lose them.
 */
export function matching<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
): { readonly ok: true; readonly value: Immutable<z.infer<Schema>> } | Mismatch {
  const { error } = schema.safeParse(value);
  if (error === undefined) return { ok: true, value: value as Immutable<z.infer<Schema>> };
  return { ok: false, reason: z.prettifyError(error).slice(0, 1_000) };
}

/** An invalid field in a request or command. `path` is dotted, e.g. `timers.noSpeechTimeoutMs`. */
export type MemberError = { readonly path: string; readonly message: string };

export type Mismatch = { readonly ok: false; readonly reason: string };

/**
 * Builds the schema for an enumerated word. It accepts any text, since later versions may add
 * words.
 */
export function wordOf<Word extends string>(words: readonly Word[]): z.ZodType<Word, Word> {
  const description = `one of ${words.map((word) => `\`${word}\``).join(', ')}; later versions may add words`;
  return z.string().min(1).describe(description) as unknown as z.ZodType<Word, Word>;
}

export const instant = z.iso.datetime({ offset: true });
export const durationMs = z.number().min(0);
/** A sequence number: 1, 2, … */
export const sequence = z.number().int().min(1);
