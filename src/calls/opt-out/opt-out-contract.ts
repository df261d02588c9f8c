// The contract for a person who asks not to be called any more: the command that says so, and the
// event.

import { z } from 'zod';
import { callCommand, callEvent } from '../contract/definitions.ts';
import { maxSuppressionSourceLength } from '../rules/suppression.ts';
import { optOutWays } from './opt-outs.ts';

export const optOutCommand = callCommand('optOut', {}).describe(
  'suppresses the number or URI that the call dialled, because the person asked for that, plays `optOutSound` of the request, and ends the call. If an agent is connected, the call continues',
);

export const optOutEvents = {
  'opted-out': callEvent({
    when: 'the person asked not to be called any more. The target of the call is suppressed in the same commit',
    data: {
      by: z.enum(optOutWays).describe('`key`: the person pressed `optOutKey`'),
      source: z
        .string()
        .max(maxSuppressionSourceLength)
        .describe('the `source` of the suppression'),
      commandId: z.string().exactOptional().describe('only with `by: command`'),
    },
    line: ({ by }) => `by ${by}`,
    watched: ({ by }) => `the person opted out, by ${by}`,
    example: { by: 'key', source: 'key 9 of call-0d9c4c52-9a63-4a7e-a7ab-0f1b5a9f7f10' },
  }),
};
