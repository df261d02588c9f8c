// What an account is owed keeps no other account waiting: its queues are found by account, then by receiver.

import type { Migration } from './migration.ts';

export const queuesByAccount: Migration = {
  version: 34,
  name: 'queues by account',
  sql: `
-- Empty: stored by a gateway before this step, or of a call that is gone.
alter table notification_lanes add column account_id text not null default '';
update notification_lanes l set account_id = c.account_id from calls c where c.call_id = l.call_id;
drop index notification_lanes_due;
create index notification_lanes_due on notification_lanes (account_id, origin, next_attempt_at);
`,
};
