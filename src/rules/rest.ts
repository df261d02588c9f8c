// How long a number is left alone after a call to it was answered, or abandoned.

import type { Otherwise } from './rule-set.ts';

export type RestRule = {
  readonly afterAbandonedMs: number;
  readonly afterAnsweredMs: number;
  readonly otherwise: Otherwise;
};

/** The last call of each kind to a number, by the whole account. */
export type LastContact = { readonly answeredAt?: Date; readonly abandonedAt?: Date };

/** @returns undefined if the rule permits a call now */
export function restEndsAt(
  { afterAbandonedMs, afterAnsweredMs }: RestRule,
  { answeredAt, abandonedAt }: LastContact,
  now: Date,
): Date | undefined {
  const ends = Math.max(
    (answeredAt?.getTime() ?? 0) + afterAnsweredMs,
    (abandonedAt?.getTime() ?? 0) + afterAbandonedMs,
  );
  return ends > now.getTime() ? new Date(ends) : undefined;
}
