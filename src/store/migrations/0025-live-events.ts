// Events as a log that is read on from where one stands, whatever the order in which their transactions commit.

import type { Migration } from './migration.ts';

export const liveEvents: Migration = {
  version: 25,
  name: 'live-events',
  sql: `
-- Of the transaction that stored the event: whoever reads only below the oldest one under way misses none that commits late. What is
-- there already gets this migration's.
alter table call_events add column transaction_id xid8 not null default pg_current_xact_id();
create index call_events_log on call_events (transaction_id, call_id collate "C", event_sequence);
`,
};
