// The contract for keys: the command that presses them, and the events for keys pressed by either
// side.

import { z } from 'zod';
import { callCommand, callEvent } from '../contract/definitions.ts';
import { durationMs } from '../contract/schema.ts';

export const dtmfCommand = callCommand('dtmf', {
  digits: z
    .string()
    .regex(/^[0-9A-D*#w]{1,64}$/, 'must be 1 to 64 of 0-9 A-D * # and w')
    .describe('pressed in this order; `w` is a 500 ms pause'),
  durationMs: z
    .number()
    .int()
    .min(40)
    .max(5_000)
    .exactOptional()
    .describe('how long each key is pressed; default: 100'),
}).describe(
  'presses keys after any keys that are still being pressed: as RTP events (RFC 4733), or as SIP INFO if the trunk is configured for it',
);

export const keyEvents = {
  dtmf: callEvent({
    when: 'the far end pressed a digit',
    data: {
      digit: z.string(),
      durationMs: durationMs.exactOptional(),
      source: z.enum(['rtp', 'info']),
    },
    line: ({ digit }) => digit,
    watched: () => 'a digit was pressed',
    example: { digit: '5', durationMs: 120, source: 'rtp' },
  }),
  'dtmf-sent': callEvent({
    when: 'the keys of a command were pressed, or the command was stopped',
    data: {
      commandId: z.string(),
      digits: z.string().describe('the keys that were pressed'),
      complete: z.boolean().describe('false if the command was stopped or the call ended first'),
    },
    line: ({ digits, complete }) => `${digits}${complete ? '' : ', incomplete'}`,
    watched: ({ complete }) => `keys were pressed${complete ? '' : ', not all of them'}`,
    example: { commandId: 'menu-1', digits: '2w4#', complete: true },
  }),
};
