// Remembers requests of the dial forms that got no answer. If such a request is sent again, it has
// the same idempotency key, so no phone is called twice. Any other request would place another
// call, so the form asks before it sends one.

const mostKept = 100;

/**
 * The attempts by the text of their request. `key`: the idempotency key. `sentBy`: the form that
 * waits for the answer. `lostBy`: the form whose answer was lost. Both are undefined if the gateway
 * refused the request.
 */
const attempts = new Map();

/** Returns the key of a request to send. `form`: any object that identifies the form. */
export function keyFor(request, form) {
  const text = JSON.stringify(request);
  const attempt = attempts.get(text) ?? { request, key: newKey(), lostBy: undefined };
  attempt.sentBy = form;
  // Move the attempt to the end of the map, because the first one is dropped.
  attempts.delete(text);
  attempts.set(text, attempt);
  if (attempts.size > mostKept) attempts.delete(attempts.keys().next().value);
  return attempt.key;
}

/** Forgets a request whose call the user sees: the same request then places another call. */
export function forgetAttempt(request) {
  attempts.delete(JSON.stringify(request));
}

/** Whether the call may have been placed in spite of this error. */
export function mayHavePlaced({ status, kind }) {
  // The gateway answers `unavailable` only if it accepted nothing. A proxy's error
  // does not say that.
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
 * Returns earlier requests without an answer that may have placed a call: requests of this form
 * before it was changed, and requests to the same phone, even of a cancelled form that still waits.
 * Returns nothing if `request` repeats one of them, because that places no other call.
 */
export function unansweredBefore(request, form) {
  const attempt = attempts.get(JSON.stringify(request));
  if (attempt !== undefined && formOf(attempt) !== undefined) return [];
  return [...attempts.values()]
    .filter((open) => formOf(open) !== undefined)
    .filter((open) => formOf(open) === form || open.request.target === request.target)
    .map((open) => open.request);
}

/** @returns the form that has no answer, or undefined if every attempt was answered */
function formOf({ sentBy, lostBy }) {
  return lostBy ?? sentBy;
}

/** Notes that the user wants another call: the form does not ask about these requests again. */
export function settle(requests) {
  for (const request of requests) noteLost(request, undefined);
}

function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `console-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}
