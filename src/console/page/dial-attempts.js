// Remembers requests of the dial forms that got no answer. A request that is sent again has the
// same key as the first time, so that no phone is called twice. Any other request would place
// another call, so the form asks before it sends one.

const mostKept = 100;

/**
 * For each request, by its text: its key, the form that waits for its answer, and the form that
 * lost its answer. Both forms are undefined if the gateway refused the request.
 */
const attempts = new Map();

/**
 * Returns the key of a request. Call it when the request is sent. `form`: any object that
 * identifies the form.
 */
export function keyFor(request, form) {
  const text = JSON.stringify(request);
  const attempt = attempts.get(text) ?? { request, key: newKey(), lostBy: undefined };
  attempt.sentBy = form;
  // Moves the attempt to the end of the map: the oldest attempt is dropped first.
  attempts.delete(text);
  attempts.set(text, attempt);
  if (attempts.size > mostKept) attempts.delete(attempts.keys().next().value);
  return attempt.key;
}

/**
 * Forgets a request. Call it when the user sees the call: the same request then places another
 * call.
 */
export function forgetAttempt(request) {
  attempts.delete(JSON.stringify(request));
}

/** Whether the call may have been placed in spite of this error. */
export function leavesOpen({ status, kind }) {
  // The gateway answers `unavailable` only if it accepted nothing. A proxy's error does not say
  // that.
  return status === undefined || (status >= 500 && kind !== 'unavailable');
}

/** Notes that the answer did not reach the user. */
export function noteLost(request, form) {
  const attempt = attempts.get(JSON.stringify(request));
  if (attempt !== undefined) Object.assign(attempt, { sentBy: undefined, lostBy: form });
}

/** Notes that the gateway refused the request. An earlier attempt may have placed the call. */
export function noteRefused(request) {
  const attempt = attempts.get(JSON.stringify(request));
  if (attempt !== undefined) attempt.sentBy = undefined;
}

/**
 * Returns earlier requests that may have placed a call, if `request` would place another one. These
 * are requests of the same form, which was changed since, and requests to the same phone. A form
 * that was cancelled may still wait for its answer. Returns nothing if `request` repeats a lost
 * one, because that places no other call.
 */
export function lostBeside(request, form) {
  const attempt = attempts.get(JSON.stringify(request));
  if (attempt !== undefined && formOf(attempt) !== undefined) return [];
  return [...attempts.values()]
    .filter((open) => formOf(open) !== undefined)
    .filter((open) => formOf(open) === form || open.request.target === request.target)
    .map((open) => open.request);
}

/** Returns the form that has no answer. @returns undefined if every attempt was answered */
function formOf({ sentBy, lostBy }) {
  return lostBy ?? sentBy;
}

/**
 * Notes that the user decided to place another call: the form does not ask about these requests
 * again.
 */
export function settle(requests) {
  for (const request of requests) noteLost(request, undefined);
}

function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `console-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}
