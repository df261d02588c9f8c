// Requests of the dial forms that got no answer. A request that is sent again has the key of its
// first time, so that no phone is called twice. Any other request would be another call: the form
// asks before it sends that.

const mostKept = 100;

/** By text of the request: its key, and the form that lost its answer (undefined: none is lost). */
const attempts = new Map();

export function keyFor(request) {
  const text = JSON.stringify(request);
  const attempt = attempts.get(text) ?? { request, key: newKey(), lostBy: undefined };
  // Set anew, it is the last one to make room.
  attempts.delete(text);
  attempts.set(text, attempt);
  if (attempts.size > mostKept) attempts.delete(attempts.keys().next().value);
  return attempt.key;
}

/** Call it when the call is known: the next request like this one is another call. */
export function forgetAttempt(request) {
  attempts.delete(JSON.stringify(request));
}

/** Whether the call may have been placed although this is all that came back. */
export function leavesOpen({ status, kind }) {
  // The gateway itself says `unavailable` only where nothing was accepted; a proxy knows less.
  return status === undefined || (status >= 500 && kind !== 'unavailable');
}

/** `form`: any object that stands for the form. */
export function noteLost(request, form) {
  const attempt = attempts.get(JSON.stringify(request));
  if (attempt !== undefined) attempt.lostBy = form;
}

/**
 * Requests that may have placed a call, if `request` would place another one beside it: those of
 * the same form, which was changed since, and those to the same phone. A request that is sent again
 * places no other call.
 */
export function lostBeside(request, form) {
  if (attempts.get(JSON.stringify(request))?.lostBy !== undefined) return [];
  return [...attempts.values()]
    .filter(({ lostBy }) => lostBy !== undefined)
    .filter((lost) => lost.lostBy === form || lost.request.target === request.target)
    .map((lost) => lost.request);
}

/** The user placed another call beside them: the form does not ask about them again. */
export function settle(requests) {
  for (const request of requests) noteLost(request, undefined);
}

function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `console-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}
