// The console's frame, which shows the signed-in app and one of the pages. A single document serves
// all pages, because the page's name comes after the `#` in the address.

import { signal } from '@preact/signals';
import { render } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { closeEvents, liveState, notice, openEvents, session } from './api.js';
import { CallPage } from './call-page.js';
import { CallersPage } from './callers-page.js';
import { CallsPage } from './calls-page.js';
import { CampaignPage, CampaignsPage } from './campaigns-page.js';
import { DetectionPage } from './detection-page.js';
import { html } from './dom.js';
import { NodesPage } from './nodes-page.js';
import { NotificationsPage } from './notifications-page.js';
import { RuleSetPage, RulesPage } from './rules-page.js';
import { ServersPage } from './servers-page.js';
import { failure, findSession, followLink, question, signOut, takeToken } from './sign-in.js';
import { SuppressionsPage } from './suppressions-page.js';
import { TodayPage } from './today-page.js';
import { TrunksPage } from './trunks-page.js';

const place = signal('');

const operate = 'Operate';
const callingRules = 'Calling Rules';

/**
 * The first one that the user may see is also the page that opens after signing in. `scope` is what
 * the app needs to see a page, and `one` shows a single item, whose id the address has. A page with
 * `under` isn't among the links; it belongs to that page.
 */
const pages = [
  { path: 'today', name: 'Today', page: TodayPage },
  { path: 'calls', name: 'Calls', page: CallsPage, one: CallPage },
  { path: 'rules', name: 'Rules', page: RulesPage, one: RuleSetPage, scope: callingRules },
  {
    path: 'campaigns',
    name: 'Campaigns',
    page: CampaignsPage,
    one: CampaignPage,
    scope: callingRules,
  },
  { path: 'suppressions', name: 'Suppressions', page: SuppressionsPage, scope: callingRules },
  { path: 'notifications', name: 'Notifications', page: NotificationsPage },
  { path: 'callers', name: 'Caller IDs', page: CallersPage, under: 'today' },
  { path: 'servers', name: 'Servers', page: ServersPage, scope: operate },
  { path: 'trunks', name: 'Trunks', page: TrunksPage, scope: operate },
  { path: 'nodes', name: 'Nodes', page: NodesPage, scope: operate },
  { path: 'detection', name: 'Detection', page: DetectionPage, scope: operate },
];

const visiblePages = () =>
  pages.filter(({ scope }) => scope === undefined || session.value.app.scopes.includes(scope));

async function start() {
  const token = takeToken('');
  if (token !== undefined) await followLink(token);
  readPlace();
  await findSession();
}

function readPlace() {
  place.value = location.hash.replace(/^#\/?/, '');
}

/** Handles a sign-in link, even if the link is opened in a tab that already shows the console. */
function changePlace() {
  const token = takeToken(place.value);
  if (token === undefined) readPlace();
  else void followLink(token);
}

const liveWords = { connecting: 'Connecting', live: 'Live', away: 'Not connected' };

function Frame({ children, current }) {
  const { app } = session.value;
  const nav = useRef(null);
  // A phone shows only some of the links. `scrollIntoView` would also move the place at which the
  // Tab key goes on.
  useEffect(() => {
    const link = nav.current?.querySelector('[aria-current]');
    if (!link) return;
    const { clientWidth, offsetLeft } = nav.current;
    const middle = link.offsetLeft - offsetLeft + link.offsetWidth / 2;
    nav.current.scrollLeft = middle - clientWidth / 2;
  }, [current]);
  return html`
    <a class="skip" href="#content" onClick=${skip}>Skip to the content</a>
    <header class="top">
      <a class="brand" href="#/">Offhook</a>
      <nav aria-label="Pages" ref=${nav}>
        ${visiblePages()
          .filter(({ under }) => under === undefined)
          .map(
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
    <${Notice} />
    <main id="content" tabindex="-1">${children}</main>
    ${question.value && html`<${LinkQuestion} ...${question.value} />`}`;
}

function Notice() {
  if (notice.value === '') return null;
  const { name } = session.value.app;
  return html`<div class="notice trouble" role="alert">
    <p>${notice.value} You are still signed in as ${name}.</p>
    <button type="button" onClick=${() => {
      notice.value = '';
    }}>Dismiss</button>
  </div>`;
}

/**
 * Asks before the app changes. Without the question, somebody could send the user a link and have
 * them work in a different app without noticing.
 */
function LinkQuestion({ signedIn, link, token }) {
  const dialog = useRef(null);
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  const stay = () => {
    question.value = undefined;
  };
  return html`<dialog ref=${dialog} onClose=${stay} aria-labelledby="link-title">
    <div class="dial">
      <h2 id="link-title">Sign in as another app?</h2>
      <dl class="apps">
        <dt>You are signed in as</dt><dd><${AppName} app=${signedIn} /></dd>
        <dt>The link is for</dt><dd><${AppName} app=${link} /></dd>
      </dl>
      <p class="faint">Calls that you dial then belong to the link's app, and its users see them. Continue only if you asked for this link.</p>
      <div class="buttons">
        <button type="button" autofocus onClick=${stay}>Stay signed in as ${signedIn.name}</button>
        <button type="button" class="danger" onClick=${() => followLink(token, signedIn.appId)}>Sign in as ${link.name}</button>
      </div>
    </div>
  </dialog>`;
}

function AppName({ app: { name, appId, accountId } }) {
  return html`<strong>${name}</strong> <span class="faint">${appId}, account ${accountId}</span>`;
}

/** Moves the focus to the content without changing the address, which names the page. */
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
    ${notice.value !== '' && html`<p class="trouble" role="alert">${notice.value}</p>`}
    <p>On the gateway's machine, run</p>
    <pre>npx offhook console</pre>
    <p>and open the link that it prints. The link works once, within a minute.</p>
  </main>`;
}

function App() {
  if (session.value === undefined) return html`<${Starting} />`;
  if (session.value === null) return html`<${SignedOut} />`;
  // With a new key, all pages start over, so they can't show another app's data.
  return html`<${SignedIn} key=${session.value.app.appId} />`;
}

function SignedIn() {
  useEffect(() => {
    openEvents();
    return closeEvents;
  }, []);
  const [address, query = ''] = place.value.split(/\?(.*)/s);
  const [path, id] = address.split('/');
  const found = visiblePages().find((page) => page.path === path) ?? visiblePages()[0];
  if (id !== undefined && found.one !== undefined) {
    return html`<${Frame} current=${found.path}><${found.one} key=${id} id=${decoded(id)} /></${Frame}>`;
  }
  return html`<${Frame} current=${found.path}><${found.page} key=${found.path} query=${query} /></${Frame}>`;
}

/** An address that was typed may contain anything. */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

addEventListener('hashchange', changePlace);
void start();
render(html`<${App} />`, document.getElementById('app'));
