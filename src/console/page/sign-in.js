// Keeps track of who is signed in. We ask the gateway when the page opens, and handle sign-in links
// and sign-outs in this tab and in other tabs.

import { signal } from '@preact/signals';
import { ask, notice, session } from './api.js';
import { forgetEarly } from './early.js';

/** Says why we couldn't find out who is signed in. Empty if we know. */
export const failure = signal('');
/**
 * Asks the user whether to follow another app's link: `{ signedIn, link, token }`. Undefined if
 * there is nothing to ask. Nothing changes until the user agrees.
 */
export const question = signal(undefined);

const nextTryMs = 3_000;

/** Tells the browser's other tabs, because all tabs share the session. */
const tabs = new BroadcastChannel('offhook-console');
tabs.onmessage = () => void readSession();

/**
 * Removes a link's token from the address and the history.
 *
 * @returns the token, or undefined if there is no token
 */
export function takeToken(place) {
  const [, token] = /^#token=(.*)$/s.exec(location.hash) ?? [];
  if (token !== undefined) history.replaceState(null, '', `#/${place}`);
  return token;
}

/** Asks the gateway who is signed in, and repeats the request until it responds. */
export async function findSession() {
  while (session.value === undefined) {
    await readSession();
    if (session.value === undefined) await new Promise((resolve) => setTimeout(resolve, nextTryMs));
  }
}

async function readSession() {
  try {
    const found = await ask('session');
    // The message and the question belong to the session that has ended.
    if (session.value === null) {
      notice.value = '';
      question.value = undefined;
    }
    session.value = found;
    failure.value = '';
  } catch (error) {
    // After a 401 no user is signed in, which `ask` has already recorded.
    if (error.status !== 401) failure.value = error.message;
  }
}

/** Signs in with a link's token. `insteadOf` is the app whose session the user is giving up. */
export async function followLink(token, insteadOf) {
  question.value = undefined;
  notice.value = '';
  forgetEarly();
  try {
    const answer = await ask('session', {
      method: 'POST',
      body: { token, ...(insteadOf === undefined ? {} : { insteadOf }) },
      // A 401 only concerns the link, so a user who is signed in stays signed in.
      endsSession: false,
    });
    if (answer.asks !== undefined) {
      question.value = { ...answer.asks, token };
      return;
    }
    session.value = answer;
    tabs.postMessage('signed in');
  } catch (error) {
    notice.value = error.message;
  }
}

export async function signOut() {
  notice.value = '';
  const message = await ask('session', { method: 'DELETE' }).then(
    () => '',
    (error) =>
      error.status === 401
        ? ''
        : `You may still be signed in: open this page again, and sign out there. ${error.message}`,
  );
  session.value = null;
  notice.value = message;
  tabs.postMessage('signed out');
}
