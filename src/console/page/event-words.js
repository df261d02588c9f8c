// Names the events of a call for people, and explains their codes.

import {
  amdReasonWords,
  missingWords,
  optOutWords,
  outcomeWords,
  reasonCodeWords,
  recordingBeginWords,
  recordingFailureWords,
  recordingPauseWords,
  recordingStopWords,
  soundEndWords,
  soundWords,
  streamReasonWords,
  wordOf,
} from './code-words.js';
import { amdWord, duration, notificationName, numberOf } from './format.js';

export const eventNames = {
  queued: 'Accepted',
  dialing: 'Dialled',
  ringing: 'Rings',
  answered: 'Answered',
  amd: 'Detection',
  abandoned: 'Abandoned',
  dtmf: 'Key pressed',
  'dtmf-sent': 'Keys sent',
  'opted-out': 'Opted out',
  'stream-started': 'Bot connected',
  'stream-stopped': 'Bot disconnected',
  'stream-failed': 'Bot not reached',
  'playback-started': 'Sound began',
  'playback-finished': 'Sound over',
  'transfer-ringing': 'Transfer rings',
  'transfer-answered': 'Transfer answered',
  'transfer-completed': 'Transfer over',
  'transfer-failed': 'Transfer failed',
  'recording-started': 'Recording began',
  'recording-paused': 'Recording paused',
  'recording-resumed': 'Recording continued',
  'recording-stopped': 'Recording over',
  'recording-stored': 'Recording stored',
  'recording-failed': 'Recording failed',
  completed: 'Call over',
  failed: 'Not answered',
};

/** Names a notification as the timeline names its event. */
export function notificationWord(body) {
  const name = notificationName(body);
  return /^amd_/.test(name) ? amdWord(name) : eventName(name);
}

export const eventName = (type) => (Object.hasOwn(eventNames, type) ? eventNames[type] : type);

const soundOf = ({ sound, source }) => `${wordOf(soundWords, source)}, ${sound}`;
const endOf = ({ outcome, reason, reasonCode }) => {
  const who = outcome === 'completed' ? wordOf(reasonCodeWords, reasonCode) : undefined;
  return `${who ?? wordOf(outcomeWords, outcome)} (${reason})`;
};

/** Explanations of the events whose data has codes: `[words, codes]`. */
const explanations = {
  amd: ({ amd }) => [amdReasonWords(amd), `${amd.event} ${amd.reason}`],
  abandoned: ({ missing }) => [`${wordOf(missingWords, missing)} within two seconds`, missing],
  'opted-out': ({ by }) => [wordOf(optOutWords, by), by],
  'stream-stopped': ({ reason }) => [streamReasonWords(reason), reason],
  'stream-failed': ({ reason, willRetry }) => [
    `${streamReasonWords(reason)}${willRetry ? '; the gateway tries again' : ''}`,
    reason,
  ],
  'playback-started': (data) => [soundOf(data), data.source],
  'playback-finished': (data) => [
    `${soundOf(data)}: ${wordOf(soundEndWords, data.reason)}, after ${duration(data.playedMs)}`,
    `${data.source} ${data.reason}`,
  ],
  'transfer-failed': ({ to, outcome, reason }) => [
    `${numberOf(to)}: ${wordOf(outcomeWords, outcome)} (${reason})`,
    outcome,
  ],
  'recording-started': ({ from }) => [wordOf(recordingBeginWords, from), from],
  'recording-paused': ({ by }) => [wordOf(recordingPauseWords, by), by],
  'recording-stopped': ({ reason }) => [wordOf(recordingStopWords, reason), reason],
  'recording-failed': ({ reason }) => [wordOf(recordingFailureWords, reason), reason],
  completed: (data) => [endOf(data), `${data.outcome} ${data.reasonCode}`],
  failed: (data) => [endOf(data), `${data.outcome} ${data.reasonCode}`],
};

/**
 * Returns an event's name and explanation, each with the code that stands behind it.
 *
 * @param line the gateway's own line about an event without codes
 */
export function eventWords({ type, data }, line = '') {
  const isAmd = type === 'amd';
  const isVerdict = isAmd && data.amd.event !== 'amd_stopped';
  const amd = isAmd ? amdWord(data.amd.event) : '';
  const name = isVerdict ? `${eventName(type)}: ${amd}` : amd || eventName(type);
  const [note, noteCode] = Object.hasOwn(explanations, type)
    ? explanations[type](data)
    : [line, undefined];
  return { name, code: type, note, noteCode };
}
