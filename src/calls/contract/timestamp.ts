// Instants. Answers use one form, that of `Date.prototype.toISOString`. Publishers may use any zone
// and precision.

import { z } from 'zod';

/**
 * Refuses years outside 1970 to 9998. Such a time is a mistake, or its year does not have four
 * digits in every zone, or PostgreSQL refuses it.
 */
export function inRange<Time extends z.ZodType<string>>(time: Time) {
  return time.refine((text) => text >= '1970' && text < '9999', 'must be from 1970 to 9998');
}

export const timestamp = z.iso
  .datetime({ offset: true, abort: true })
  .overwrite((text) => new Date(text).toISOString())
  // At the ends of the calendar, another zone can lead to a year without four digits.
  .refine((text) => text.length === 24, 'must be of a year of four digits')
  .meta({
    id: 'Timestamp',
    description: 'ISO 8601 UTC with milliseconds',
    // The pattern of zod knows the length of each month, which would bloat the document.
    pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{3}Z$',
    examples: ['2026-11-20T09:30:00.000Z'],
  });
