// What the dial forms sent and got no answer to. A request that is sent again has the key of its first time, so that no phone is called
// twice. A request that is not the same would be another call: the form asks before it sends that.

const mostKept = 100;

/** By the text of the request: the request, its key, and the form that lost its answer (undefined: no answer is missing). */
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

/** Its call is known: the next request like it is another call. A refusal says nothing of what was sent before it. */
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
 * Requests that may have placed a call, where `request` would place another one: those of the same form, which was changed since, and
 * those to the same phone. None for a request that is sent again.
 */
export function lostBeside(request, form) {
  if (attempts.get(JSON.stringify(request))?.lostBy !== undefined) return [];
  return [...attempts.values()]
    .filter(({ lostBy }) => lostBy !== undefined)
    .filter((lost) => lost.lostBy === form || lost.request.target === request.target)
    .map((lost) => lost.request);
}

/** The user knows of them and places another call: they are not asked about again. They keep their keys. */
export function settle(requests) {
  for (const request of requests) noteLost(request, undefined);
}

function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `console-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}
