// A node marks others lost only when its own renewals have arrived for a whole lease without a gap.
// After an outage of the database every lease has run out, and the first node to renew must not take
// that for the death of the others.

import type { Migration } from './migration.ts';

export const steadyLeases: Migration = {
  version: 33,
  name: 'steady leases',
  sql: `
-- Since when the renewals of this process have arrived without a gap. Null: an older version wrote
-- the row.
alter table nodes add column steady_since timestamptz(3);
`,
};
