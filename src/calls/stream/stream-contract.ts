// Streams to bots in the contract: the command that begins or ends one, and the events that say what becomes of it.

import { z } from 'zod';
import { callCommand, callEvent } from '../contract/definitions.ts';
import { durationMs } from '../contract/schema.ts';
import { streamParameters, streamUrl } from './stream-members.ts';

export const streamCommand = callCommand('stream', {
  url: streamUrl
    .nullable()
    .describe(
      'ws or wss URL of a bot, whose query string is in no event and no log; null: the call has no bot any more, which is no hang-up',
    ),
  parameters: streamParameters.exactOptional(),
}).describe('has a bot take the audio, in place of the one that has it; 50 in a call');

const count = z.number().int().min(0);

const beganBy = {
  commandId: z
    .string()
    .exactOptional()
    .describe('of the command that began it; absent for that of the request'),
};

const failureLine = ({ reason, willRetry }: { reason: string; willRetry: boolean }): string =>
  `${reason}${willRetry ? ', tried again' : ''}`;

export const streamEvents = {
  'stream-started': callEvent({
    when: 'the bot took the audio stream',
    data: {
      ...beganBy,
      connection: count.min(1).describe('1, and one more each time that it was made again'),
      openMs: durationMs.describe('from the try that succeeded to `start`'),
    },
    line: ({ connection, openMs }) => `connection ${connection}, ${openMs} ms`,
    watched: ({ openMs }) => `the bot has the audio after ${openMs} ms`,
    example: { connection: 1, openMs: 45 },
  }),
  'stream-stopped': callEvent({
    when: 'the audio stream is over; without numbers where they were not told in time',
    data: {
      ...beganBy,
      stoppedBy: z.string().exactOptional().describe('the command that ended or replaced it'),
      reason: z.string().describe('`call-ended`, `bot-closed`, `replaced`, `command`, …'),
      connections: count.exactOptional(),
      playedMs: durationMs.exactOptional().describe('audio of the bot that went out'),
      droppedMs: durationMs.exactOptional().describe('audio of the bot beyond what is kept'),
      underruns: count.exactOptional().describe('gaps of under 200 ms in what the bot said'),
      unheardMs: durationMs.exactOptional().describe('audio that the bot did not take in time'),
      ignoredMessages: count.exactOptional().describe('messages of the bot that were wrong'),
    },
    line: ({ reason }) => reason,
    watched: ({ reason }) => `the audio stream is over: ${reason}`,
    example: {
      reason: 'call-ended',
      connections: 1,
      playedMs: 4_200,
      droppedMs: 0,
      underruns: 0,
      unheardMs: 0,
      ignoredMessages: 0,
    },
  }),
  'stream-failed': callEvent({
    when: 'the bot could not be reached, or its connection broke',
    data: {
      ...beganBy,
      reason: z.string().describe('a code: `ECONNREFUSED`, `status-404`, `closed-1012`, …'),
      willRetry: z
        .boolean()
        .describe('false: the call is hung up, or goes on without a bot where a command began it'),
    },
    line: failureLine,
    watched: (data) => `the bot has no audio: ${failureLine(data)}`,
    example: { reason: 'ECONNREFUSED', willRetry: true },
  }),
};
