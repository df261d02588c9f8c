// Trace ids of messages are kept for 30 days: those that are older are found without reading all messages that are.

import type { Migration } from './migration.ts';

export const traceIds: Migration = {
  version: 29,
  name: 'trace ids',
  sql: '',
  indexes: [
    {
      name: 'messages_with_trace_id',
      on: `messages ((created_on at time zone 'UTC')) where trace_id is not null`,
    },
  ],
};
