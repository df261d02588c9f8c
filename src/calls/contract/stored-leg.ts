// The state that another process needs to end a leg. We store it in the database, and send it to
// the node that should end the leg.

import { z } from 'zod';
import type { Immutable } from './schema.ts';

/** A well-behaved far end sends header lines that are much shorter than this. */
const text = z.string().max(4_096);

export const storedLeg = z.object({
  engine: text.describe('host:port of the control connection, never its secret'),
  sipCallId: text,
  transactionId: text,
  requestUri: text,
  localTag: text.exactOptional(),
  dialogId: text.exactOptional().describe('only after the 200'),
  remoteTag: text
    .exactOptional()
    .describe(
      'this and the next two fields describe the early dialog from the first 18x on, then the dialog confirmed by the 200 OK',
    ),
  remoteTarget: text.exactOptional(),
  routeSet: z.array(text).max(20).exactOptional(),
  tlsHop: text
    .exactOptional()
    .describe(
      'where the INVITE was sent over TLS, with the identity to verify, for our own engine',
    ),
  nextHop: text
    .exactOptional()
    .describe('where to send requests if that is neither the first route nor the remote target'),
  localUri: text.exactOptional(),
  remoteUri: text.exactOptional(),
  inviteCseq: z.int().nonnegative().exactOptional(),
  trunk: text
    .exactOptional()
    .describe('the trunk whose credentials answer a challenge to the BYE; absent in a direct call'),
});
export type StoredLeg = Immutable<z.infer<typeof storedLeg>>;

export const legEndResults = ['ended', 'gone', 'cancelled', 'unreachable'] as const;
export type LegEndResult = (typeof legEndResults)[number];

/** Reply from the node that was asked to end the leg. */
export const legEndReply = z.object({ result: z.enum(legEndResults) });
