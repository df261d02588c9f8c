// When a test fails, prints the output of its gateways next to the failure, because nobody can look
// at it later on a CI machine.

import { afterEach } from 'vitest';
import { forgetLogs, lastLogs } from './gateway-logs.ts';

// vitest runs this file again for each test file in a worker, but not the modules that it imports.
forgetLogs();

afterEach(({ task }) => {
  if (task.result?.state !== 'fail') return;
  for (const log of lastLogs()) if (log !== '') console.error(log);
});
