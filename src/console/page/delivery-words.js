// Says what became of a notification and of each attempt to deliver it.

import { connectionWords, deliveryFailureWords, httpStatusWords, wordOf } from './code-words.js';
import { duration, fullTime, plural, timeOf } from './format.js';

/** @returns `{ text, code }` */
export function attemptWords({ responseStatus, error, durationMs, delivered }) {
  const after = `after ${durationMs} ms`;
  if (responseStatus !== undefined) {
    const text = delivered ? `accepted ${after}` : `${httpStatusWords(responseStatus)}, ${after}`;
    return { text, code: String(responseStatus) };
  }
  return error === undefined
    ? { text: `no answer ${after}` }
    : { text: `${connectionWords(error)}, ${after}`, code: error };
}

/**
 * Says how far a notification has come.
 *
 * @param isFirst whether no notification of the call waits before this one
 * @returns `{ text, code, tone }`
 */
export function notificationWords(notification, isFirst = true) {
  const { state, attempts, failure } = notification;
  if (state === 'delivered') return deliveredWords(notification);
  const failed = attempts.findLast(({ delivered }) => !delivered);
  const why = failed === undefined ? undefined : attemptWords(failed);
  const tries = plural(attempts.length, 'attempt');
  if (state === 'failed') {
    const because = wordOf(deliveryFailureWords, failure ?? state);
    // The other reasons say what the last attempt said.
    const last = failure === 'expired' && why ? ` (${tries}, the last: ${why.text})` : '';
    return { text: `given up: ${because}${last}`, code: codesOf(failure, why), tone: 'bad' };
  }
  const next = nextTry(notification, isFirst);
  return {
    text: why ? `not delivered after ${tries}: ${why.text}; ${next}` : next,
    code: codesOf(state, why),
    tone: why ? 'bad' : '',
  };
}

/** Shown with a tenth of a second, such a time would be 0.0 s. */
const atOnceMs = 50;

function deliveredWords({ state, attempts, replays, createdAt, deliveredAt }) {
  const ms = Date.parse(deliveredAt) - Date.parse(createdAt);
  const took = ms < atOnceMs ? 'at once' : `${duration(ms)} after the event`;
  const by = replays.length > 0 ? 'when it was sent again' : took;
  const tries = attempts.length > 1 ? `, at attempt ${attempts.length}` : '';
  return { text: `delivered ${by}${tries}`, code: state, tone: 'good' };
}

const codesOf = (state, why) => [state, why?.code].filter(Boolean).join(' ');

function nextTry({ nextAttemptAt }, isFirst) {
  if (!isFirst) return 'waits for the notification before it';
  return nextAttemptAt === undefined ? 'is being sent' : `next try at ${timeOf(nextAttemptAt)}`;
}

/** @returns what happened to the notification, in order, as `{ at, text, code }` */
export function deliveryHistory({ attempts, replays }) {
  const events = [
    ...attempts.map((attempt) => ({
      at: attempt.startedAt,
      ...withNumber(attempt),
    })),
    ...replays.map(({ replayedAt, by }) => ({ at: replayedAt, text: `sent again by ${by}` })),
  ];
  return events
    .sort((a, b) => Date.parse(a.at) - Date.parse(b.at))
    .map((event) => ({ ...event, time: fullTime(event.at) }));
}

function withNumber(attempt) {
  const { text, code } = attemptWords(attempt);
  return {
    text: `Attempt ${attempt.attempt}: ${text}`,
    code,
    tone: attempt.delivered ? 'good' : 'bad',
  };
}
