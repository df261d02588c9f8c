// What another process needs to end a leg: kept in SQL, and sent to another node that is asked to do it.

import { z } from 'zod';
import type { Immutable } from './schema.ts';

/** A header line of a well-behaved far end is far below. */
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
    .describe('this and the next two from the first 18x on, of its early dialog; then of the 200'),
  remoteTarget: text.exactOptional(),
  routeSet: z.array(text).max(20).exactOptional(),
  localUri: text.exactOptional(),
  remoteUri: text.exactOptional(),
  inviteCseq: z.int().nonnegative().exactOptional(),
});
export type StoredLeg = Immutable<z.infer<typeof storedLeg>>;

export const legEndResults = ['ended', 'gone', 'cancelled', 'unreachable'] as const;
export type LegEndResult = (typeof legEndResults)[number];

/** What the node that was asked says. */
export const legEndReply = z.object({ result: z.enum(legEndResults) });
