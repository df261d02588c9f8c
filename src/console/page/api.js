// Requests to the gateway that served the page, and its live events. Addresses are relative: a proxy may have put a path in front.

import { signal } from '@preact/signals';
import { forgetAttempt, keyFor, leavesOpen, noteLost, noteRefused } from './dial-attempts.js';

/** What `/console/session` says; null: no user is signed in; undefined: not known yet. */
export const session = signal(undefined);
/** What the user should know about signing in and out, whatever page is shown. */
export const notice = signal('');

export class Problem extends Error {
  constructor(status, document) {
    super(document.detail ?? `The gateway answered ${status}.`);
    this.status = status;
    /** What programs look at; undefined where a proxy answered. */
    this.kind = document.type?.replace('urn:offhook:problem:', '');
    this.errors = document.errors ?? [];
    this.requestId = document.requestId;
  }
}

/**
 * The gateway's clock when the page was opened, by that of the page, which goes on evenly while the browser's may be set. An answer's
 * date is of whole seconds, and a page that slept is behind: the latest guess is the best one.
 */
let gatewayOpenedMs = Number.NEGATIVE_INFINITY;

export const gatewayNowMs = () =>
  Number.isFinite(gatewayOpenedMs) ? gatewayOpenedMs + performance.now() : Date.now();

function compareClocks(response) {
  const dateMs = Date.parse(response.headers.get('date'));
  if (!Number.isNaN(dateMs))
    gatewayOpenedMs = Math.max(gatewayOpenedMs, dateMs - performance.now());
}

/** A connection that died unnoticed would keep a request for minutes. */
const longestAnswerMs = 30_000;

/**
 * `endsSession`: a 401 says that no user is signed in.
 * @throws Problem, and Error where the gateway is not reached
 */
export async function ask(path, { method = 'GET', body, headers = {}, endsSession = true } = {}) {
  const failUnreached = () => {
    const more = method === 'GET' ? 'The page tries again.' : 'Whether this was done is not known.';
    throw new Error(`The gateway is not reached. ${more}`);
  };
  const response = await fetch(`console/${path}`, {
    method,
    headers: {
      accept: 'application/json',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(method === 'GET' ? {} : { 'x-console-token': session.value?.pageToken ?? '' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(longestAnswerMs),
  }).catch(failUnreached);
  compareClocks(response);
  // Of an answer may come the beginning alone: it is none. A refusal is one without its words.
  if (response.ok) return await response.json().catch(failUnreached);
  const document = await response.json().catch(() => ({}));
  if (response.status === 401 && endsSession) endSession();
  throw new Problem(response.status, document);
}

function endSession() {
  if (session.value)
    notice.value =
      'Your session has ended: it was signed out elsewhere, is eight hours old, or its app was revoked or given new credentials.';
  session.value = null;
}

const ofBot = (botId) => `api/public/bot/${encodeURIComponent(botId)}`;

export const api = {
  calls: (query) => ask(`api/public/calls?${new URLSearchParams(query)}`),
  call: (callId) => ask(`api/public/calls/${encodeURIComponent(callId)}`),
  capture: (callId) => ask(`api/calls/${encodeURIComponent(callId)}/capture`),
  notifications: (botId, callId) =>
    ask(`${ofBot(botId)}/calls/${encodeURIComponent(callId)}/notifications`),
  hangUp: (botId, callId) =>
    ask(`${ofBot(botId)}/calls/${encodeURIComponent(callId)}`, { method: 'DELETE' }),
  /**
   * Sent again after a lost answer, the same request is the same call. `form`: see `keyFor`.
   * `isGone`: the form was closed, and its user does not see the answer.
   */
  dial: async (request, form, isGone = () => false) => {
    const bot = encodeURIComponent(request.botId);
    try {
      const answer = await ask(`api/1.1/public/bot/${bot}/V2/contactcenter/dialout`, {
        method: 'POST',
        body: request,
        headers: { 'idempotency-key': keyFor(request, form) },
      });
      if (isGone()) noteLost(request, form);
      else forgetAttempt(request);
      return answer;
    } catch (error) {
      if (leavesOpen(error)) noteLost(request, form);
      else noteRefused(request);
      throw error;
    }
  },
  deadLetters: (query) =>
    ask(`api/public/notifications?${new URLSearchParams({ state: 'failed', ...query })}`),
  replay: (botId, eventId) =>
    ask(`${ofBot(botId)}/notifications/${encodeURIComponent(eventId)}/replay`, {
      method: 'POST',
      body: {},
    }),
  receivers: () => ask('api/receivers'),
  sandbox: () => ask('api/sandbox'),
  trunks: () => ask('api/operate/trunks'),
  nodes: () => ask('api/operate/nodes'),
  detection: () => ask('api/operate/detection'),
};

// ── Live events ──────────────────────────────────────────────────────────────────────────────────────────────────────

/** connecting, live, away */
export const liveState = signal('connecting');

const firstWaitMs = 500;
const longestWaitMs = 10_000;
/** The gateway sends a comment every 15 s. */
const longestSilenceMs = 45_000;

const listeners = new Set();
let source;

/** Told of each event of the app's calls, and of `undefined` where some may have been missed. Returns its removal. */
export function onEvent(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

const tell = (event) => {
  for (const listener of listeners) listener(event);
};

/** EventSource has a listener for each type, and tells of no other: types that come later are read from here. */
export function openEvents() {
  closeEvents();
  const abort = new AbortController();
  source = abort;
  void follow(abort.signal);
}

export function closeEvents() {
  source?.abort();
  source = undefined;
}

async function follow(signal) {
  const place = { cursor: undefined };
  let waitMs = firstWaitMs;
  while (!signal.aborted) {
    const wasLive = await followOnce(place, signal).catch(() => false);
    if (signal.aborted) return;
    liveState.value = 'away';
    waitMs = wasLive ? firstWaitMs : Math.min(waitMs * 2, longestWaitMs);
    await new Promise((resolve) => setTimeout(resolve, waitMs));
  }
}

/** Whether it came about; until it ends, or nothing came for too long. */
async function followOnce(place, signal) {
  // Of a laptop that slept, or a network that forgot, the connection may never end by itself.
  const silence = new AbortController();
  let timer;
  const heard = () => {
    clearTimeout(timer);
    timer = setTimeout(() => silence.abort(), longestSilenceMs);
  };
  heard();
  try {
    return await readEvents(place, AbortSignal.any([signal, silence.signal]), heard);
  } finally {
    clearTimeout(timer);
  }
}

async function readEvents(place, signal, heard) {
  const { cursor } = place;
  const response = await fetch('console/api/public/events', {
    headers: {
      accept: 'text/event-stream',
      ...(cursor === undefined ? {} : { 'last-event-id': cursor }),
    },
    signal,
  });
  if (response.status === 401) endSession();
  if (!response.ok) return false;
  liveState.value = 'live';
  // What happened before is read anew.
  if (cursor === undefined) tell(undefined);
  await read(response.body, place, heard).catch(() => undefined);
  return true;
}

async function read(body, place, heard) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    heard();
    text += value;
    const blocks = text.split('\n\n');
    text = blocks.pop();
    for (const block of blocks) dispatch(fieldsOf(block), place);
  }
}

function dispatch({ id, event, data }, place) {
  place.cursor = id ?? place.cursor;
  if (event === 'reset') tell(undefined);
  else if (data !== undefined) tell(JSON.parse(data));
}

function fieldsOf(block) {
  const fields = {};
  for (const line of block.split('\n')) {
    const colon = line.indexOf(': ');
    if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 2);
  }
  return fields;
}
