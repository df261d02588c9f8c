// The slots of `call_totals`: quarters of an hour in UTC. Every time zone of today has an offset of
// whole quarters, so each of its days is a whole number of slots.

export const slotMs = 900_000;

/** Returns the beginning of the slot in which a time lies, as an SQL expression. */
export function slotOf(time: string): string {
  return `date_bin('15 minutes', ${time}, timestamptz '2000-01-01 00:00:00+00')`;
}
