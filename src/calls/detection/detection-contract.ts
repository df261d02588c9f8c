// The contract for detection: the `amd` event.

import { callEvent } from '../contract/definitions.ts';
import { answerTimes, exampleAnswer } from '../life/call-contract.ts';
import { type AmdEvent, amdEvent, exampleAmdEvent } from './amd-event.ts';

export const detectionEvents = {
  amd: callEvent({
    when: 'answering machine detection has something to report',
    data: { ...answerTimes, amd: amdEvent },
    line: ({ amd }) => amd.event,
    watched: ({ amd }) => describeDetection(amd),
    example: {
      ...exampleAnswer,
      notificationSequence: 2,
      amd: exampleAmdEvent,
    },
  }),
};

function describeDetection({ event, reason, words }: AmdEvent): string {
  const heard =
    words === undefined || words === 0 ? '' : `, ${words} ${words === 1 ? 'word' : 'words'}`;
  return `${event} (${reason}${heard})`;
}
