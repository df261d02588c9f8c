// What the page says about a call's recording, apart from the player.

import { duration, fullTime } from './format.js';

/** Why a call couldn't be recorded, or its recording couldn't be stored. */
export const failureWords = {
  'disk-full': 'the gateway’s disk is full',
  'spool-unusable': 'the gateway cannot write to its spool',
  'disk-slow': 'the gateway’s disk is too slow',
  'thread-failed': 'the gateway’s recording thread died',
  key: 'the key could not be used',
  'media-failed': 'the gateway’s media process died',
  announcement: 'the announcement was not played to its end',
  'store-unreachable': 'the store did not respond for 24 hours',
  'store-refused': 'the store refused it',
  'store-full': 'the store is full',
  lost: 'the gateway died, and its spool cannot be read',
};

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
  return `Failed${after}: ${failureWords[reason] ?? reason ?? 'for an unknown reason'}.`;
}

const lengthOf = (ms, before) => (ms === undefined ? '' : `${before}${duration(ms)}`);

/** Says how much was paused, and what became of it. Empty if nothing was. */
export function pauseWords({ pauses, isCut }) {
  if (pauses.length === 0) return '';
  const ms = pauses.reduce((sum, { fromMs, untilMs }) => sum + untilMs - fromMs, 0);
  const times = pauses.length === 1 ? 'once' : `${pauses.length} times`;
  return `Paused ${times}, ${duration(ms)} in all, which ${isCut ? 'is cut out' : 'is silence'}.`;
}
