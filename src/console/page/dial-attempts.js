// Requests of the dial forms that got no answer. A request that is sent again has the key of its
// first time, so that no phone is called twice. Any other request would be another call: the form
// asks before it sends that.

const mostKept = 100;

/**
 * By text of the request: its key, the form that waits for its answer, and the form that lost it
 * (both undefined: the gateway refused it).
 */
const attempts = new Map();

/** Call it when the request is sent. `form`: any object that stands for the form. */
export function keyFor(request, form) {
  const text = JSON.stringify(request);
  const attempt = attempts.get(text) ?? { request, key: newKey(), lostBy: undefined };
  attempt.sentBy = form;
  // Set anew, it is the last one to make room.
  attempts.delete(text);
  attempts.set(text, attempt);
  if (attempts.size > mostKept) attempts.delete(attempts.keys().next().value);
  return attempt.key;
}

/** Call it when the user sees the call: the next request like this one is another call. */
export function forgetAttempt(request) {
  attempts.delete(JSON.stringify(request));
}

/** Whether the call may have been placed although this is all that came back. */
export function leavesOpen({ status, kind }) {
  // The gateway itself says `unavailable` only where nothing was accepted; a proxy knows less.
  return status === undefined || (status >= 500 && kind !== 'unavailable');
}

/** Call it when the answer did not reach the user. */
export function noteLost(request, form) {
  const attempt = attempts.get(JSON.stringify(request));
  if (attempt !== undefined) Object.assign(attempt, { sentBy: undefined, lostBy: form });
}

/** Call it when the gateway refused the request. An earlier try may have placed the call. */
export function noteRefused(request) {
  const attempt = attempts.get(JSON.stringify(request));
  if (attempt !== undefined) attempt.sentBy = undefined;
}

/**
 * Requests that may have placed a call, if `request` would place another one beside it: those of
 * the same form, which was changed since, and those to the same phone. A form that was cancelled
 * may still wait for its answer. A request that is sent again places no other call.
 */
export function lostBeside(request, form) {
  const attempt = attempts.get(JSON.stringify(request));
  if (attempt !== undefined && formOf(attempt) !== undefined) return [];
  return [...attempts.values()]
    .filter((open) => formOf(open) !== undefined)
    .filter((open) => formOf(open) === form || open.request.target === request.target)
    .map((open) => open.request);
}

/** The form without an answer; undefined: every try was answered. */
function formOf({ sentBy, lostBy }) {
  return lostBy ?? sentBy;
}

/** The user placed another call beside them: the form does not ask about them again. */
export function settle(requests) {
  for (const request of requests) noteLost(request, undefined);
}

function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `console-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}
