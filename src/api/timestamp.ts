// The one form of an instant in every answer: what `Date.prototype.toISOString` writes.

import { z } from 'zod';

export const timestamp = z.iso.datetime({ precision: 3 }).meta({
  id: 'Timestamp',
  description: 'ISO 8601 UTC with milliseconds',
  // zod's own knows the length of each month, and fills the document.
  pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{3}Z$',
  examples: ['2026-11-20T09:30:00.000Z'],
});
