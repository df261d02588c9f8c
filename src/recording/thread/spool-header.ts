// `header.json` in a recording's folder in the spool, which is written before any audio. Another
// node can finish the recording with it.

import { z } from 'zod';
import { recordingFills } from '../../calls/recording/recording.ts';

export const spoolHeaderSchema = z.object({
  version: z.literal(1),
  callId: z.string().min(1),
  accountId: z.string().min(1),
  botId: z.string().min(1),
  /** The node and start that records the call. */
  ownerId: z.string().min(1),
  /** Time of the first sample, in milliseconds since the epoch. */
  startedAt: z.number().int().nonnegative(),
  from: z.string(),
  fill: z.enum(recordingFills),
  /** Omitted if the recording isn't encrypted. The content key itself is never here. */
  encryption: z
    .object({
      keyName: z.string().min(1),
      /** base64, under `SECRETS_KEY`. */
      sealedContentKey: z.string().min(1),
      wrapped: z.object({
        algorithm: z.enum(['RSA-OAEP-256', 'X25519-HKDF-A256GCM']),
        key: z.string().min(1),
      }),
    })
    .optional(),
});

export type SpoolHeader = z.infer<typeof spoolHeaderSchema>;
