// What became of a transfer, as its last event and the call's end tell it.

import { z } from 'zod';
import { type CallOutcome, callOutcomes } from '../contract/call-words.ts';
import { durationMs, type Immutable, instant, wordOf } from '../contract/schema.ts';
import { transferModes } from './transfer.ts';

export const transferNames = {
  commandId: z
    .string()
    .exactOptional()
    .describe('of the command that began it; absent for `bridge` of the request'),
  to: z.string().describe('`tel:` or `sip:` URI'),
  mode: z.enum(transferModes),
};

export const transferSummary = z.object({
  ...transferNames,
  outcome: wordOf<CallOutcome>(callOutcomes).describe(
    '`completed`: bridged; `transferred`: referred; else what it failed with',
  ),
  answeredAt: instant.exactOptional().describe('absent where it was not answered'),
  durationMs: durationMs.exactOptional().describe('from the answer of the second leg to its end'),
  msToTwoWayAudio: durationMs
    .exactOptional()
    .describe("from the second leg's 200 OK until audio had gone both ways"),
  sipStatus: z.number().int().exactOptional().describe('of a second leg that failed'),
});
export type TransferSummary = Immutable<z.infer<typeof transferSummary>>;
