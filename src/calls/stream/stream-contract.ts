// The contract for bot streams: the command that starts or ends a stream, and a stream's events.

import { z } from 'zod';
import { callCommand, callEvent } from '../contract/definitions.ts';
import { durationMs } from '../contract/schema.ts';
import { streamParameters, streamUrl } from './stream-members.ts';

export const streamCommand = callCommand('stream', {
  url: streamUrl
    .nullable()
    .describe(
      'ws or wss URL of a bot; its query string never appears in events or logs. Null ends the stream without hanging up',
    ),
  parameters: streamParameters.exactOptional(),
}).describe(
  'streams the audio to a bot, in place of the current stream; at most 50 streams per call',
);

const count = z.number().int().min(0);

const streamOrigin = {
  commandId: z
    .string()
    .exactOptional()
    .describe('id of the command that began the stream; absent for the stream of the request'),
};

const failureLine = ({ reason, willRetry }: { reason: string; willRetry: boolean }): string =>
  `${reason}${willRetry ? ', trying again' : ''}`;

export const streamEvents = {
  'stream-started': callEvent({
    when: 'the bot accepted the audio stream',
    data: {
      ...streamOrigin,
      connection: count
        .min(1)
        .describe('1 for the first connection, one more for each reconnection'),
      openMs: durationMs.describe(
        'from the start of the successful attempt until `start` was sent',
      ),
    },
    line: ({ connection, openMs }) => `connection ${connection}, ${openMs} ms`,
    watched: ({ openMs }) => `the bot has the audio after ${openMs} ms`,
    example: { connection: 1, openMs: 45 },
  }),
  'stream-stopped': callEvent({
    when: 'the audio stream ended; the counts are absent if the media did not report them in time',
    data: {
      ...streamOrigin,
      stoppedBy: z
        .string()
        .exactOptional()
        .describe('id of the command that ended or replaced the stream'),
      reason: z.string().describe('`call-ended`, `bot-closed`, `replaced`, `command`, …'),
      connections: count.exactOptional(),
      playedMs: durationMs.exactOptional().describe('how much bot audio was sent'),
      droppedMs: durationMs
        .exactOptional()
        .describe('how much bot audio was dropped because there was no room for it'),
      underruns: count.exactOptional().describe('gaps shorter than 200 ms in the bot audio'),
      unheardMs: durationMs
        .exactOptional()
        .describe('how much audio the bot did not accept in time'),
      ignoredMessages: count.exactOptional().describe('number of invalid messages from the bot'),
    },
    line: ({ reason }) => reason,
    watched: ({ reason }) => `the audio stream ended: ${reason}`,
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
      ...streamOrigin,
      reason: z.string().describe('a code: `ECONNREFUSED`, `status-404`, `closed-1012`, …'),
      willRetry: z
        .boolean()
        .describe(
          'false: the call is hung up, or continues without a bot if a command began the stream',
        ),
    },
    line: failureLine,
    watched: (data) => `the bot has no audio: ${failureLine(data)}`,
    example: { reason: 'ECONNREFUSED', willRetry: true },
  }),
};
