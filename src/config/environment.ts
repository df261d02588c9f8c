// All variables that the gateway reads, in the order of the table in sip-config/README.md.

import { z } from 'zod';
import { callVariables } from './call-variables.ts';
import { processVariables } from './process-variables.ts';
import { recordingVariables } from './recording-variables.ts';
import { serverVariables } from './server-variables.ts';

export const environment = z.object({
  ...serverVariables,
  ...callVariables,
  ...recordingVariables,
  ...processVariables,
});

export type Environment = z.infer<typeof environment>;
