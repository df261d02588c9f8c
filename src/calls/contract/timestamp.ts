// Schemas for instants. Responses always use the format of `Date.prototype.toISOString`, whereas
// inputs may use any zone and precision.

import { z } from 'zod';

/**
 * Rejects years outside 1970 to 9998. Such a time is usually a mistake. Besides, PostgreSQL rejects
 * some of them, and others have a year of more than four digits in some zone.
 */
export function inRange<Time extends z.ZodType<string>>(time: Time) {
  return time.refine((text) => text >= '1970' && text < '9999', 'must be from 1970 to 9998');
}

export const timestamp = z.iso
  .datetime({ offset: true, abort: true })
  .overwrite((text) => new Date(text).toISOString())
  // Near the ends of the calendar, converting to UTC can yield a year of more than four digits, or
  // a negative one.
  .refine((text) => text.length === 24, 'must have a four-digit year')
  .meta({
    id: 'Timestamp',
    description: 'ISO 8601 UTC with milliseconds',
    // zod's own pattern encodes the length of each month, which would bloat the API document.
    pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{3}Z$',
    examples: ['2026-11-20T09:30:00.000Z'],
  });
