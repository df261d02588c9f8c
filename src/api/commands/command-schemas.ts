// What the API says of commands to a call.

import { z } from 'zod';
import { commandRemarks, commandSchema as contract } from '../../calls/contract/command.ts';

export const commandSchema = contract.meta({
  id: 'CallCommand',
  description:
    'Members that are not listed do nothing, and are named in `ignored` of the answer; a near miss of a listed one is a 400 that gives its name, but for `hangup`.',
  examples: [
    { command: 'play', sound: 'sound:spring-offer', id: 'offer-1' },
    { command: 'dtmf', digits: '2w4#' },
    { command: 'stop' },
    { command: 'stream', url: 'wss://bot.example/audio', parameters: { campaign: 'spring' } },
    { command: 'stream', url: null },
    { command: 'transfer', to: 'sip:agents@pbx.example', timeoutMs: 20_000 },
    { command: 'hangup' },
  ],
});

export const commandAnswerSchema = z
  .object({
    ok: z.literal(true),
    commandId: z.string().describe('of the request, or a new one; events that come of it name it'),
    state: z.string().describe('of the call, e.g. `answered`; `ending` after a hang-up'),
    ...commandRemarks,
  })
  .meta({
    id: 'CallCommandAnswer',
    examples: [{ ok: true, commandId: 'offer-1', state: 'answered' }],
  });
