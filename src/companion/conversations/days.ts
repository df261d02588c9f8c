// Calendar days of a caller, somewhere in the world.

import { z } from 'zod';

/** Without `to`: it goes on. */
export type Period = { readonly from: Date; readonly to?: Date };

const day = z.iso.date({ error: 'must be a date, YYYY-MM-DD' });
const offset = (number: z.ZodNumber | z.ZodCoercedNumber) => number.int().min(-840).max(720);

function members(number: z.ZodNumber | z.ZodCoercedNumber) {
  return {
    startDate: day.exactOptional().describe('the first day; left out: no day is too early'),
    endDate: day.exactOptional().describe('the last day; left out: no day is too late'),
    timeZoneOffset: offset(number)
      .exactOptional()
      .describe('minutes from local time to UTC, negative ahead of UTC; left out: UTC'),
  };
}

/** Strict: a misspelled bound would silently bound nothing. */
export const daysInBody = z.strictObject(members(z.number())).meta({
  id: 'Days',
  description: 'The session is found when any part of it was on these days.',
  examples: [{ startDate: '2026-11-20', endDate: '2026-11-20', timeZoneOffset: -60 }],
});
export const daysInQuery = z.strictObject(members(z.coerce.number<string>()));

export type Days = z.infer<typeof daysInBody>;

const minuteMs = 60_000;
const dayMs = 1_440 * minuteMs;

export function fallsOn(days: Days, period: Period, now: Date): boolean {
  const { startDate, endDate, timeZoneOffset = 0 } = days;
  const midnight = (date: string) => Date.parse(date) + timeZoneOffset * minuteMs;
  const isTooEarly = startDate !== undefined && (period.to ?? now).getTime() < midnight(startDate);
  const isTooLate = endDate !== undefined && period.from.getTime() >= midnight(endDate) + dayMs;
  return !isTooEarly && !isTooLate;
}
