// What the page says about a call's recording, apart from the player.

import { recordingFailureWords } from './code-words.js';
import { duration, fullTime } from './format.js';

const deletions = {
  retention: 'because its time was over',
  person: 'together with everything about this person',
};

/** @returns `{ tone, text }`. `tone` is a class of `.status` */
export function recordingWords({ recording, startedAt }) {
  const { state, durationMs, pausedBy, deletedAt, deletedBy } = recording;
  if (deletedAt !== undefined) {
    const how = deletions[deletedBy] ?? `by the app ${deletedBy}`;
    return { tone: 'still', text: `Deleted at ${fullTime(deletedAt)}, ${how}.` };
  }
  switch (state) {
    case 'recording':
      return { tone: 'live', text: `Being recorded since ${fullTime(startedAt)}.` };
    case 'paused':
      return {
        tone: 'wait',
        text: `Paused ${pausedBy === 'keys' ? 'while the person presses keys' : 'by a command'}. Nothing is recorded, and digits are hidden.`,
      };
    case 'storing':
      return {
        tone: 'wait',
        text: `Being stored${lengthOf(durationMs, ': ')}. You can listen to it when it is in its store.`,
      };
    case 'failed':
      return { tone: 'bad', text: failedWords(recording) };
    default:
      return { tone: 'good', text: `Stored${lengthOf(durationMs, ': ')}.` };
  }
}

function failedWords({ reason, durationMs }) {
  const after = durationMs > 0 ? ` after ${duration(durationMs)}` : '';
  return `Failed${after}: ${recordingFailureWords[reason] ?? reason ?? 'for an unknown reason'}.`;
}

const lengthOf = (ms, before) => (ms === undefined ? '' : `${before}${duration(ms)}`);

/** Says how much was paused, and what became of it. Empty if nothing was. */
export function pauseWords({ pauses, isCut }) {
  if (pauses.length === 0) return '';
  const ms = pauses.reduce((sum, { fromMs, untilMs }) => sum + untilMs - fromMs, 0);
  const times = pauses.length === 1 ? 'once' : `${pauses.length} times`;
  return `Paused ${times}, ${duration(ms)} in all, which ${isCut ? 'is cut out' : 'is silence'}.`;
}
