// How often a number may be called.

import type { Otherwise } from './rule-set.ts';

/** At most `most` attempts within any period of `withinMs`. */
export type AttemptRule = {
  readonly most: number;
  readonly withinMs: number;
  readonly otherwise: Otherwise;
};

/**
 * Returns when the rule permits the next attempt.
 *
 * @param attemptedAt the account's attempts to call the number, in any order
 * @returns undefined if it permits one now
 */
export function attemptPermittedAt(
  { most, withinMs }: AttemptRule,
  attemptedAt: readonly Date[],
  now: Date,
): Date | undefined {
  const since = now.getTime() - withinMs;
  const counted = attemptedAt
    .map((time) => time.getTime())
    .filter((time) => time > since)
    .sort((a, b) => b - a);
  // Once the `most`th attempt from the newest is old enough, fewer than `most` are left.
  const decisive = counted[most - 1];
  return decisive === undefined ? undefined : new Date(decisive + withinMs);
}
