// Remembers dial requests that got no response. If the user sends one of these requests again, it
// carries the same idempotency key, so no phone rings twice. A different request would place
// another call, so the form asks the user first.

const mostKept = 100;

/**
 * The attempts, keyed by their request's text. In each attempt, `key` is the idempotency key,
 * `sentBy` is the form that is waiting for the response, and `lostBy` is the form that didn't get
 * the response. Both forms are undefined if the gateway rejected the request.
 */
const attempts = new Map();

/** Returns the key for a request. `form` can be any object that identifies the form. */
export function keyFor(request, form) {
  const text = JSON.stringify(request);
  const attempt = attempts.get(text) ?? { request, key: newKey(), lostBy: undefined };
  attempt.sentBy = form;
  // Move the attempt to the end of the map, because we drop attempts from the front.
  attempts.delete(text);
  attempts.set(text, attempt);
  if (attempts.size > mostKept) attempts.delete(attempts.keys().next().value);
  return attempt.key;
}

/** Forgets a request once the user can see its call. Sending it again then places another call. */
export function forgetAttempt(request) {
  attempts.delete(JSON.stringify(request));
}

/** Returns whether the call may have been placed despite this error. */
export function mayHavePlaced({ status, kind }) {
  // The gateway only responds with `unavailable` if it hasn't accepted the request. A proxy's error
  // doesn't tell us that.
  return status === undefined || (status >= 500 && kind !== 'unavailable');
}

/** Records that the user didn't get the response. */
export function noteLost(request, form) {
  const attempt = attempts.get(JSON.stringify(request));
  if (attempt !== undefined) Object.assign(attempt, { sentBy: undefined, lostBy: form });
}

/**
 * Records that the gateway rejected the request. An earlier attempt may still have placed the call.
 */
export function noteRefused(request) {
  const attempt = attempts.get(JSON.stringify(request));
  if (attempt !== undefined) attempt.sentBy = undefined;
}

/**
 * Returns earlier requests that got no response and may have placed a call. These are requests that
 * this form sent before the user changed it, and requests to the same phone, even from a cancelled
 * form that is still waiting. If `request` repeats one of them, returns nothing, because a repeated
 * request doesn't place another call.
 */
export function unansweredBefore(request, form) {
  const attempt = attempts.get(JSON.stringify(request));
  if (attempt !== undefined && formOf(attempt) !== undefined) return [];
  return [...attempts.values()]
    .filter((open) => formOf(open) !== undefined)
    .filter((open) => formOf(open) === form || open.request.target === request.target)
    .map((open) => open.request);
}

/** @returns the form that got no response, or undefined if every attempt got one */
function formOf({ sentBy, lostBy }) {
  return lostBy ?? sentBy;
}

/** Records that the user wants another call, so the form won't ask about these requests again. */
export function settle(requests) {
  for (const request of requests) noteLost(request, undefined);
}

function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `console-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}
