// Prints the output of the gateways of a failed test beside the failure: on a CI machine, nobody
// can look at it later.

import { afterEach } from 'vitest';
import { forgetLogs, lastLogs } from './gateway-logs.ts';

// vitest runs this file again for each test file of a worker, but not the modules that it imports.
forgetLogs();

afterEach(({ task }) => {
  if (task.result?.state !== 'fail') return;
  for (const log of lastLogs()) if (log !== '') console.error(log);
});
