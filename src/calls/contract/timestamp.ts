// Instants, of one form in every answer: what `Date.prototype.toISOString` writes. Those who publish may write any zone and
// precision.

import { z } from 'zod';

/** What lies outside is a mistake, or has no four digits for its year in every zone, and PostgreSQL refuses some of it. */
export function inRange<Time extends z.ZodType<string>>(time: Time) {
  return time.refine((text) => text >= '1970' && text < '9999', 'must be from 1970 to 9998');
}

export const timestamp = z.iso
  .datetime({ offset: true, abort: true })
  .overwrite((text) => new Date(text).toISOString())
  // At the ends of the calendar a zone leads out of its four digits.
  .refine((text) => text.length === 24, 'must be of a year of four digits')
  .meta({
    id: 'Timestamp',
    description: 'ISO 8601 UTC with milliseconds',
    // zod's own knows the length of each month, and would fill the document.
    pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{3}Z$',
    examples: ['2026-11-20T09:30:00.000Z'],
  });
