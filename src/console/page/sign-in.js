// Who is signed in: the page finds it out when it opens. Links and sign-outs change it, here or in
// another tab.

import { signal } from '@preact/signals';
import { ask, notice, session } from './api.js';

/** What keeps the page from knowing who is signed in. */
export const failure = signal('');
/**
 * A link of another app than the one that is signed in: `{ signedIn, link, token }`. Nothing changes
 * before the user agrees.
 */
export const question = signal(undefined);

const nextTryMs = 3_000;

/** The tabs of this browser share the session. */
const tabs = new BroadcastChannel('offhook-console');
tabs.onmessage = () => void readSession();

/** Removes the token of a link from the address and the history; undefined if there is none. */
export function takeToken(place) {
  const [, token] = /^#token=(.*)$/s.exec(location.hash) ?? [];
  if (token !== undefined) history.replaceState(null, '', `#/${place}`);
  return token;
}

/** Until it is known. */
export async function findSession() {
  while (session.value === undefined) {
    await readSession();
    if (session.value === undefined) await new Promise((resolve) => setTimeout(resolve, nextTryMs));
  }
}

async function readSession() {
  try {
    const found = await ask('session');
    // Of the session that ended before.
    if (session.value === null) {
      notice.value = '';
      question.value = undefined;
    }
    session.value = found;
    failure.value = '';
  } catch (error) {
    // No user is signed in, as `ask` has noted.
    if (error.status !== 401) failure.value = error.message;
  }
}

/** `insteadOf`: the app whose session the user gives up for it. */
export async function followLink(token, insteadOf) {
  question.value = undefined;
  notice.value = '';
  try {
    const answer = await ask('session', {
      method: 'POST',
      body: { token, ...(insteadOf === undefined ? {} : { insteadOf }) },
      // Of the link: whoever is signed in stays so.
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
