// How a call sounded, as its end reports it.

import { z } from 'zod';
import type { Immutable } from '../contract/schema.ts';

const share = z.number().min(0).max(100);
const milliseconds = z.number().min(0);

export const callQuality = z.object({
  lossPercent: share.describe('share of the packets from the person that did not arrive'),
  jitterMs: milliseconds.describe('how irregularly they arrived: mean of the estimate of RFC 3550'),
  concealedMs: milliseconds.describe(
    'audio that was lost or late, so that a bot or detection heard a continuation that Offhook ' +
      'made up for up to 60 ms, and then silence',
  ),
  roundTripMs: milliseconds
    .exactOptional()
    .describe('there and back, from the far end’s RTCP; absent if it sends none'),
  rFactor: z
    .number()
    .describe('G.107, from the loss and the delay: 0 (unusable) to 93 (a good line)'),
  mos: z.number().describe('the same as a mean opinion score: 1 to 4.5'),
  remote: z
    .object({ lossPercent: share, jitterMs: milliseconds })
    .exactOptional()
    .describe('what the far end reports about our packets, by RTCP; absent if it sends none'),
});
export type CallQuality = Immutable<z.infer<typeof callQuality>>;

export const exampleQuality: CallQuality = {
  ...{
    lossPercent: 0.3,
    jitterMs: 2.1,
    concealedMs: 240,
    roundTripMs: 84,
    rFactor: 89.2,
    mos: 4.33,
  },
  remote: { lossPercent: 0, jitterMs: 1.5 },
};
