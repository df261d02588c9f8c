// Checks the order of events with a regular expression. Each event is one letter.

import type { AmdEvent, AmdEventName } from '../../src/calls/detection/amd-event.ts';

const letters: Readonly<Record<AmdEventName, string>> = {
  amd_human_detected: 'H',
  amd_machine_detected: 'M',
  amd_machine_stopped_speaking: 'S',
  amd_tone_detected: 'T',
  amd_no_speech_detected: 'N',
  amd_decision_timeout: 'D',
  amd_error: 'E',
  amd_stopped: '.',
};

/** A tone or the end of speaking is impossible without a verdict before it. */
const complete = /^(HT?|(MS?T?)?|N|D|E)\.$/;

/** Describes what is wrong with the events of a whole call, or returns undefined if nothing is. */
export function grammarFault(events: readonly AmdEvent[]): string | undefined {
  const word = events.map(({ event }) => letters[event]).join('');
  if (!complete.test(word)) return `order ${word}`;
  const backwards = events.some(
    ({ elapsedMs }, index) => elapsedMs < (events[index - 1]?.elapsedMs ?? 0),
  );
  if (backwards) return 'the clock ran backwards';
  if (events.some(({ reason }) => !/^[a-z]+(-[a-z]+)*$/.test(reason)))
    return 'a reason that is not kebab-case';
  const corrected = events.filter(({ corrects }) => corrects !== undefined);
  const human = word.startsWith('HT');
  return corrected.length === (human ? 1 : 0) ? undefined : 'a correction without a human verdict';
}
