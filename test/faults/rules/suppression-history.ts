// What the requests about suppressions prove, from when each was sent and answered alone. Requests
// about one number overlap, and some get no answer. A request takes effect at one instant between
// its beginning and its end, and one without an answer may also never take effect. A number is
// certainly suppressed if each order that these intervals permit leaves it suppressed.

/** All instants come from `Date.now()`. */
export type SuppressionRequest = {
  readonly accountId: string;
  readonly number: string;
  readonly askedAt: number;
  /** When its answer arrived. Undefined without an answer. */
  readonly answeredAt?: number;
  /** Without an answer: from when on it can have no more effect, if that is known. */
  readonly overAt?: number;
  /** Until when a PUT suppresses the number. A DELETE frees it, which is 0. */
  readonly suppressedUntil: number;
};

const never = Number.POSITIVE_INFINITY;

/** @param requests the requests about one number of one account, in any order */
export function isCertainlySuppressed(
  requests: readonly SuppressionRequest[],
  at: number,
): boolean {
  const over = requests.filter(({ answeredAt = never }) => answeredAt <= at);
  // Until a request has certainly taken effect, the number may be as free as at the beginning.
  if (over.length === 0) return false;
  // The last writer is a request that no finished one certainly follows.
  const lastAskedAt = Math.max(...over.map(({ askedAt }) => askedAt));
  return requests
    .filter(({ askedAt }) => askedAt <= at)
    .filter(({ answeredAt, overAt }) => (answeredAt ?? overAt ?? never) >= lastAskedAt)
    .every(({ suppressedUntil }) => suppressedUntil > at);
}

/** Counts the requests that another one about the same number overlaps. */
export function countOverlapping(requests: readonly SuppressionRequest[]): number {
  const endOf = ({ answeredAt, overAt }: SuppressionRequest): number =>
    answeredAt ?? overAt ?? never;
  return [...groupedByNumber(requests).values()].flatMap((same) =>
    same.filter((one) =>
      same.some(
        (other) => other !== one && other.askedAt <= endOf(one) && endOf(other) >= one.askedAt,
      ),
    ),
  ).length;
}

export function groupedByNumber<Item extends { accountId: string; number: string }>(
  items: readonly Item[],
): ReadonlyMap<string, readonly Item[]> {
  const groups = new Map<string, Item[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}

export function keyOf({ accountId, number }: { accountId: string; number: string }): string {
  return `${accountId} ${number}`;
}
