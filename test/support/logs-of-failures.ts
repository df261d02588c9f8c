// What the gateways of a test that failed had to say, beside the failure: on another machine there is no second look.

import { afterEach } from 'vitest';
import { forgetLogs, lastLogs } from './gateway-logs.ts';

// Run anew for each file of a worker; what it imports is not.
forgetLogs();

afterEach(({ task }) => {
  if (task.result?.state !== 'fail') return;
  for (const log of lastLogs()) if (log !== '') console.error(log);
});
