// The contract for transfers: the command that starts one, its events, and the summary of the last
// transfer in the terminal event.

import { z } from 'zod';
import { type CallOutcome, callOutcomes } from '../contract/call-words.ts';
import { callCommand, callEvent, seconds } from '../contract/definitions.ts';
import { durationMs, type Immutable, instant, wordOf } from '../contract/schema.ts';
import { cause } from '../life/end-facts.ts';
import {
  hasAtMostOneReading,
  numberReadingMembers,
  oneReadingOnly,
} from '../target/number-reading.ts';
import { transferModes } from './transfer.ts';
import { transferMembers, transferTarget } from './transfer-members.ts';

export const transferCommand = callCommand('transfer', {
  to: transferTarget,
  ...transferMembers,
  ...numberReadingMembers,
})
  .refine(hasAtMostOneReading, { path: ['bareNumbers'], message: oneReadingOnly })
  .describe('connects the person to an agent; one transfer at a time, at most 20 per call');

const names = {
  commandId: z
    .string()
    .exactOptional()
    .describe('id of the command that began the transfer; absent for `bridge` of the request'),
  to: z.string().describe('`tel:` or `sip:` URI'),
  mode: z.enum(transferModes),
};

export const transferSummary = z.object({
  ...names,
  outcome: wordOf<CallOutcome>(callOutcomes).describe(
    '`completed`: bridged; `transferred`: referred; otherwise the failure',
  ),
  answeredAt: instant.exactOptional().describe('absent if the transfer was not answered'),
  durationMs: durationMs.exactOptional().describe('from the answer of the second leg to its end'),
  msToTwoWayAudio: durationMs
    .exactOptional()
    .describe("from the second leg's 200 OK until audio had gone both ways"),
  sipStatus: z
    .number()
    .int()
    .exactOptional()
    .describe('final status of the second leg, if it failed'),
  cause: cause.exactOptional(),
});
export type TransferSummary = Immutable<z.infer<typeof transferSummary>>;

const example = { commandId: 'agents-1', to: 'sip:agents@pbx.example', mode: 'bridge' } as const;

export const transferEvents = {
  'transfer-ringing': callEvent({
    when: "the agent's phone is ringing",
    data: {
      ...names,
      sipStatus: z.number().int().describe('the first 18x of the second leg'),
      earlyMedia: z
        .boolean()
        .describe("whether the person hears the second leg's ringback instead of the gateway's"),
    },
    line: ({ to, sipStatus }) => `${to}: ${sipStatus}`,
    watched: ({ mode, sipStatus }) => `transfer (${mode}) rings: ${sipStatus}`,
    example: { ...example, sipStatus: 180, earlyMedia: false },
  }),
  'transfer-answered': callEvent({
    when: 'the person is connected to the agent: the second 200 OK was stored and acknowledged',
    data: names,
    line: ({ to, mode }) => `${to} (${mode})`,
    watched: ({ mode }) => `transfer (${mode}): connected`,
    example,
  }),
  'transfer-completed': callEvent({
    when: 'a transfer ended after it had connected the person',
    data: transferSummary.shape,
    line: ({ to, durationMs: lastedMs = 0 }) => `${to}, ${seconds(lastedMs)}`,
    watched: ({ outcome, durationMs: lastedMs = 0 }) =>
      `transfer ended after ${seconds(lastedMs)}: ${outcome}`,
    example: {
      ...example,
      outcome: 'completed',
      answeredAt: '2026-11-20T09:00:14.020Z',
      durationMs: 65_300,
      msToTwoWayAudio: 45,
    },
  }),
  'transfer-failed': callEvent({
    when: 'no agent was connected; the call continues if it has a bot, or with `onFailure: stay`',
    data: {
      ...names,
      outcome: wordOf<CallOutcome>(callOutcomes),
      reason: z.string().describe('reason phrase without the status, or what failed'),
      sipStatus: z.number().int().exactOptional(),
      cause: cause.exactOptional(),
    },
    line: ({ to, reason }) => `${to}: ${reason}`,
    watched: ({ outcome, reason }) => `transfer failed: ${outcome} (${reason})`,
    example: { ...example, outcome: 'busy', reason: '486 Busy Here', sipStatus: 486 },
  }),
};
