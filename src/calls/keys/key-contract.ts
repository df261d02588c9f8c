// Keys in the contract: the command that presses them, and the events of those that were pressed.

import { z } from 'zod';
import { callCommand, callEvent } from '../contract/definitions.ts';
import { durationMs } from '../contract/schema.ts';

export const dtmfCommand = callCommand('dtmf', {
  digits: z
    .string()
    .regex(/^[0-9A-D*#w]{1,64}$/, 'must be 1 to 64 of 0-9 A-D * # and w')
    .describe('in this order; `w` waits for 500 ms'),
  durationMs: z
    .number()
    .int()
    .min(40)
    .max(5_000)
    .exactOptional()
    .describe('of each key; left out: 100'),
}).describe(
  'presses keys, behind those that are being pressed: as RTP events (RFC 4733), or as SIP INFO where the trunk says so',
);

export const keyEvents = {
  dtmf: callEvent({
    when: 'a digit was pressed',
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
    when: 'the keys of a command were pressed',
    data: {
      commandId: z.string(),
      digits: z.string().describe('those that were pressed'),
      complete: z.boolean().describe('false: it was stopped, or the call ended'),
    },
    line: ({ digits, complete }) => `${digits}${complete ? '' : ', and no more'}`,
    watched: ({ complete }) => `keys were pressed${complete ? '' : ', not all of them'}`,
    example: { commandId: 'menu-1', digits: '2w4#', complete: true },
  }),
};
