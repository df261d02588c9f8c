// Ids of every endpoint, parameter, header, field and rule of the service's specification, with its
// words: `<area>.<operation>.<query|header|path|body|response|rule>.<name>`. Tests name the ids
// that they prove (proves.ts), and a complete run fails if one is not proven (spec-report.ts).

import { connectionIds } from './spec/connections.ts';
import { conversationIds } from './spec/conversations.ts';
import { dialoutIds } from './spec/dialout.ts';
import { historyIds } from './spec/history.ts';
import { importIds } from './spec/imports.ts';
import { notificationIds } from './spec/notifications.ts';
import { tableIds } from './spec/tables.ts';
import { testRunIds } from './spec/test-runs.ts';

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
