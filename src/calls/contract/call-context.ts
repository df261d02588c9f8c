// A call's context. Bot flows read it from the `call-context` bucket or over HTTP.

import { z } from 'zod';
import { amdEvent, amdEventNames } from '../detection/amd-event.ts';
import { durationMs, type Immutable } from './schema.ts';

export const callContextSchema = z.object({
  session: z.object({
    UserSession: z.object({
      amd: z.array(z.enum(amdEventNames)).describe('event names in their order'),
      amdInfo: z.object({
        amdEvents: z.array(amdEvent).exactOptional(),
        amdGreeting: z.string().exactOptional(),
        amdReason: z.string().exactOptional(),
        amdRingDurationInMs: durationMs.exactOptional(),
        amdConnectDurationInMs: durationMs.exactOptional(),
      }),
    }),
  }),
  metadata: z.record(z.string(), z.unknown()),
});
export type CallContext = Immutable<z.infer<typeof callContextSchema>>;
