// The contract for abandoned calls: the `abandoned` event.

import { callEvent, seconds } from '../contract/definitions.ts';
import { durationMs, wordOf } from '../contract/schema.ts';
import {
  type ConnectionKind,
  connectionKinds,
  type MeterFormula,
  meterFormulas,
} from './abandonment.ts';

const who: Readonly<Record<ConnectionKind, string>> = {
  agent: 'no agent',
  'bot-or-agent': 'neither a bot nor an agent',
  message: 'no message',
};

export const abandonmentEvents = {
  abandoned: callEvent({
    when: 'a person answered, and nobody was connected within two seconds. If detection corrects its verdict later, the last notification and the record have no `abandoned`',
    data: {
      formula: wordOf<MeterFormula>(meterFormulas).describe(
        'whose clock counted: `ftc` from the end of the greeting, `ofcom` from its beginning',
      ),
      missing: wordOf<ConnectionKind>(connectionKinds).describe(
        'who or what was not connected in time',
      ),
      greetingEndedMs: durationMs
        .exactOptional()
        .describe(
          'from the answer to the end of the person’s greeting; absent if none was heard, and the clock began at the answer',
        ),
    },
    line: ({ missing, greetingEndedMs }) =>
      `${missing} missing${greetingEndedMs === undefined ? '' : `, greeting ended after ${seconds(greetingEndedMs)}`}`,
    watched: ({ missing }) => `abandoned: ${who[missing]} within two seconds`,
    example: { formula: 'ftc', missing: 'bot-or-agent', greetingEndedMs: 940 },
  }),
};
