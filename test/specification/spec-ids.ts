// Gives each endpoint, parameter, header, field and rule in the service's specification an id,
// along with the specification's wording. Ids have the form
// `<area>.<operation>.<query|header|path|body|response|rule>.<name>`. Tests declare which ids they
// cover (see covers.ts). A complete run fails if any id isn't covered by a passing test (see
// spec-report.ts).

import { connectionIds } from './ids/connections.ts';
import { conversationIds } from './ids/conversations.ts';
import { dialoutIds } from './ids/dialout.ts';
import { historyIds } from './ids/history.ts';
import { importIds } from './ids/imports.ts';
import { notificationIds } from './ids/notifications.ts';
import { tableIds } from './ids/tables.ts';
import { testRunIds } from './ids/test-runs.ts';

/** What the specification says about the service as a whole. */
const serviceIds = {
  'service.auth.rule.jwt': 'All other endpoints use the header `auth` holding a signed token',
  'service.auth.rule.api-key':
    'Connection endpoints use the header `x-api-key`, holding an API key of an API app',
  'service.data.rule.timestamps': 'Timestamps are ISO 8601 UTC strings with milliseconds',
  'service.data.rule.json': 'All request and response bodies are JSON',
} as const;

export const specIds = {
  ...connectionIds,
  ...dialoutIds,
  ...notificationIds,
  ...importIds,
  ...testRunIds,
  ...tableIds,
  ...historyIds,
  ...conversationIds,
  ...serviceIds,
} as const;

export type SpecId = keyof typeof specIds;
