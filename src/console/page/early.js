// Asks for what the page is about to show while the browser still loads the other modules. This
// module therefore comes first, and imports only what it needs to name the requests.

import { dayOf } from './hours.js';

/**
 * Returns the paths that the opening page requests first, spelled as in its calls of `ask`. The
 * document preloads the session. A sign-in link replaces that session, so nobody then uses it.
 */
function pathsOf(place) {
  const day = (weeks) =>
    `api/public/calls/summary?${new URLSearchParams({ ...dayOf(Date.now(), weeks), quarters: true })}`;
  if (place === '#/calls') return ['session', 'api/public/calls?limit=50'];
  return ['', '#/', '#/today'].includes(place) ? ['session', day(0), day(1)] : ['session'];
}

/** Nobody waits longer than this for an early response. */
const longestMs = 5_000;

const send = (path) =>
  fetch(`console/${path}`, {
    headers: { accept: 'application/json' },
    signal: AbortSignal.timeout(longestMs),
  }).catch(() => undefined);

/** Outside a browser nothing is asked early. */
const paths = globalThis.location === undefined ? [] : pathsOf(location.hash);
const requests = new Map(paths.map((path) => [path, send(path)]));

/** The responses are those of the session that the page began with. */
export const forgetEarly = () => requests.clear();

// By then the page has what it needs, or the response is too old for it.
setTimeout(forgetEarly, longestMs);

/** @returns the response, once. Undefined if there is no such request, or if it failed */
export async function takeEarly(path) {
  const request = requests.get(path);
  requests.delete(path);
  return await request;
}
