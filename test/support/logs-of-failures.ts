// What the gateways of a test that failed had to say, beside the failure: on another machine there is no second look.

import { afterEach } from 'vitest';
import { logsOfGateways } from './gateway-process.ts';

afterEach(({ task }) => {
  if (task.result?.state !== 'fail') return;
  for (const log of logsOfGateways()) if (log !== '') console.error(log);
});
