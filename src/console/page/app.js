// The console: who is signed in, which page is shown. The page stands behind `#`, so that one document serves all.

import { signal } from '@preact/signals';
import { render } from 'preact';
import { useEffect } from 'preact/hooks';
import { ask, closeEvents, liveState, openEvents, session } from './api.js';
import { CallPage } from './call-page.js';
import { CallsPage } from './calls-page.js';
import { html } from './dom.js';
import { NotificationsPage } from './notifications-page.js';
import { DetectionPage, NodesPage, TrunksPage } from './operate-pages.js';

const place = signal('');

const pages = [
  { path: 'calls', name: 'Calls', page: CallsPage },
  { path: 'notifications', name: 'Notifications', page: NotificationsPage },
  { path: 'trunks', name: 'Trunks', page: TrunksPage, operates: true },
  { path: 'nodes', name: 'Nodes', page: NodesPage, operates: true },
  { path: 'detection', name: 'Detection', page: DetectionPage, operates: true },
];

const visiblePages = () =>
  pages.filter(({ operates }) => !operates || session.value.app.scopes.includes('Operate'));

const failure = signal('');

async function start() {
  const token = /^#token=([\w-]+)$/.exec(location.hash)?.[1];
  if (token !== undefined) {
    // Used up by now: it is not for the history.
    history.replaceState(null, '', '#/calls');
    await signIn(token);
  } else {
    readPlace();
    await findSession();
    return;
  }
  readPlace();
}

const nextTryMs = 3_000;

/** Until it is known, or a user signs in. */
async function findSession() {
  while (session.value === undefined) {
    try {
      const found = await ask('session');
      session.value ??= found;
      failure.value = '';
    } catch (error) {
      // No user is signed in, as `ask` has noted.
      if (error.status === 401) return;
      failure.value = error.message;
      await new Promise((resolve) => setTimeout(resolve, nextTryMs));
    }
  }
}

async function signIn(token) {
  failure.value = '';
  try {
    session.value = await ask('session', { method: 'POST', body: { token } });
  } catch (error) {
    failure.value = error.message;
    session.value = null;
  }
}

async function signOut() {
  failure.value = '';
  await ask('session', { method: 'DELETE' }).catch(({ status, message }) => {
    if (status !== 401)
      failure.value = `You may still be signed in: open this page again, and sign out there. ${message}`;
  });
  session.value = null;
}

function readPlace() {
  if (/^#token=/.test(location.hash)) void start();
  else place.value = location.hash.replace(/^#\/?/, '') || 'calls';
}

const liveWords = { connecting: 'Connecting', live: 'Live', away: 'Not connected' };

function Frame({ children, current }) {
  const { app } = session.value;
  return html`
    <a class="skip" href="#content" onClick=${skip}>To the content</a>
    <header class="top">
      <a class="brand" href="#/calls">Offhook</a>
      <nav aria-label="Pages">
        ${visiblePages().map(
          ({ path, name }) =>
            html`<a href=${`#/${path}`} aria-current=${path === current ? 'page' : null}>${name}</a>`,
        )}
      </nav>
      <div class="who">
        <span class=${`live ${liveState.value}`} role="status">${liveWords[liveState.value]}</span>
        <span class="app" title=${`App ${app.appId}, account ${app.accountId}`}>${app.name}</span>
        <button type="button" class="plain" onClick=${signOut}>Sign out</button>
      </div>
    </header>
    <main id="content" tabindex="-1">${children}</main>`;
}

/** The address says which page it is, and must not be changed by this. */
function skip(event) {
  event.preventDefault();
  document.getElementById('content')?.focus();
}

function Starting() {
  return html`<main class="alone" aria-busy="true">
    ${failure.value !== '' && html`<p class="brand">Offhook</p><p class="trouble" role="alert">${failure.value}</p>`}
  </main>`;
}

function SignedOut() {
  useEffect(() => {
    document.title = 'Sign in · Offhook';
  }, []);
  return html`<main class="alone">
    <p class="brand">Offhook</p>
    <h1>Sign in</h1>
    ${failure.value !== '' && html`<p class="trouble" role="alert">${failure.value}</p>`}
    <p>On the machine of the gateway, run</p>
    <pre>npx offhook console</pre>
    <p>and open the link that it prints. It is good for one sign-in within a minute.</p>
  </main>`;
}

function App() {
  const isSignedIn = Boolean(session.value);
  useEffect(() => {
    if (!isSignedIn) return undefined;
    openEvents();
    return closeEvents;
  }, [isSignedIn]);
  if (session.value === undefined) return html`<${Starting} />`;
  if (session.value === null) return html`<${SignedOut} />`;
  const [path, id] = place.value.split('?')[0].split('/');
  if (path === 'calls' && id !== undefined) {
    return html`<${Frame} current="calls"><${CallPage} key=${id} callId=${id} /></${Frame}>`;
  }
  const found = visiblePages().find((page) => page.path === path) ?? pages[0];
  return html`<${Frame} current=${found.path}><${found.page} key=${found.path} /></${Frame}>`;
}

addEventListener('hashchange', readPlace);
void start();
render(html`<${App} />`, document.getElementById('app'));
