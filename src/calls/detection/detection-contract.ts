// The contract for detection: the `amd` event.

import { callContextSchema } from '../contract/call-context.ts';
import { callEvent } from '../contract/definitions.ts';
import { answerTimes, exampleAnswer, exampleContexts } from '../life/call-contract.ts';
import { type AmdEvent, amdEvent, exampleAmdEvent } from './amd-event.ts';

export const detectionEvents = {
  amd: callEvent({
    when: 'answering machine detection has something to report',
    data: { ...answerTimes, amd: amdEvent, context: callContextSchema },
    line: ({ amd }) => amd.event,
    watched: ({ amd }) => describeDetection(amd),
    example: {
      ...exampleAnswer,
      notificationSequence: 2,
      amd: exampleAmdEvent,
      context: exampleContexts.detected,
    },
  }),
};

function describeDetection({ event, reason, words }: AmdEvent): string {
  const heard =
    words === undefined || words === 0 ? '' : `, ${words} ${words === 1 ? 'word' : 'words'}`;
  return `${event} (${reason}${heard})`;
}
