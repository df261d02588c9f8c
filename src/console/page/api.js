// Sends requests to the gateway that served the page, and reads its live events. All addresses are
// relative, because a proxy may serve the gateway under a path.

import { signal } from '@preact/signals';
import { forgetAttempt, keyFor, mayHavePlaced, noteLost, noteRefused } from './dial-attempts.js';
import { forgetEarly, takeEarly } from './early.js';

/**
 * The response from `/console/session`. Null if nobody is signed in, and undefined until we know.
 */
export const session = signal(undefined);
/** A message about signing in or signing out, which every page shows. */
export const notice = signal('');

export class Problem extends Error {
  constructor(status, document) {
    super(document.detail ?? `The gateway responded with ${status}.`);
    this.status = status;
    /** The kind of problem. Undefined if the response came from a proxy. */
    this.kind = document.type?.replace('urn:offhook:problem:', '');
    this.errors = document.errors ?? [];
    this.requestId = document.requestId;
  }
}

/**
 * Estimates the gateway's time at which the page was opened. We measure against
 * `performance.now()`, which is monotonic, because users can change the browser's clock. The latest
 * estimate always wins: a response's date only has whole seconds, but `performance.now()` falls
 * behind while a laptop is asleep.
 */
let gatewayOpenedMs = Number.NEGATIVE_INFINITY;

export const gatewayNowMs = () =>
  Number.isFinite(gatewayOpenedMs) ? gatewayOpenedMs + performance.now() : Date.now();

function compareClocks(response) {
  const dateMs = Date.parse(response.headers.get('date'));
  if (!Number.isNaN(dateMs))
    gatewayOpenedMs = Math.max(gatewayOpenedMs, dateMs - performance.now());
}

/** Without this time-out, a request on a dead connection could hang for minutes. */
const responseTimeoutMs = 30_000;

const readJson = (response) => response.json();

/**
 * Sends a request to the gateway. `endsSession` says whether a 401 means that no user is signed in.
 * `read` reads the response.
 *
 * @throws Problem if the gateway rejects the request, or Error if we can't reach the gateway
 */
export async function ask(
  path,
  { method = 'GET', body, headers = {}, endsSession = true, read = readJson } = {},
) {
  const failUnreached = () => {
    const more =
      method === 'GET' ? 'The page tries again.' : 'It is not known whether this was done.';
    throw new Error(`The gateway cannot be reached. ${more}`);
  };
  const send = () =>
    fetch(`console/${path}`, {
      method,
      headers: {
        accept: 'application/json',
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(method === 'GET' ? {} : { 'x-console-token': session.value?.pageToken ?? '' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(responseTimeoutMs),
    });
  const early = method === 'GET' ? await takeEarly(path) : undefined;
  const response = early ?? (await send().catch(failUnreached));
  compareClocks(response);
  // If the request succeeded, we need the whole body. For an error, the status is enough.
  if (response.ok) return await read(response).catch(failUnreached);
  const document = await response.json().catch(() => ({}));
  if (response.status === 401 && endsSession) endSession();
  throw new Problem(response.status, document);
}

function endSession() {
  forgetEarly();
  if (session.value)
    notice.value =
      'Your session has ended: you signed out elsewhere, it is eight hours old, or its app was revoked or got new credentials.';
  session.value = null;
}

const botPath = (botId) => `api/public/bot/${encodeURIComponent(botId)}`;
const dialoutPath = (botId) =>
  `api/1.1/public/bot/${encodeURIComponent(botId)}/V2/contactcenter/dialout`;
const ruleSetPath = (name) => `api/public/rules/${encodeURIComponent(name)}`;
const recordingPath = ({ botId, callId }) =>
  `${botPath(botId)}/calls/${encodeURIComponent(callId)}/recording`;
const suppressionPath = (number) => `api/public/suppressions/${encodeURIComponent(number)}`;

/** The most requests for one page of calls. Each of them searches for a fraction of a second. */
const maxSearches = 20;

/** The path of all the app's calls, or of a bot's. */
const callsPath = (botId) => (botId === undefined ? 'api/public/calls' : `${botPath(botId)}/calls`);
const readCalls = (query, botId) => ask(`${callsPath(botId)}?${new URLSearchParams(query)}`);

/**
 * Reads a page of calls. A request only searches a part of the calls, so it may find nothing and
 * return a cursor. The page then continues the search, but not forever.
 */
async function searchCalls(query, botId) {
  let page = await readCalls(query, botId);
  for (let searches = 1; searches < maxSearches; searches += 1) {
    if (page.calls.length > 0 || page.nextCursor === undefined) break;
    page = await readCalls({ ...query, cursor: page.nextCursor }, botId);
  }
  return page;
}

/** The address of a call's recording, for the audio element and for downloads. */
export const recordingAddress = (call) => `console/${recordingPath(call)}`;

export const api = {
  calls: searchCalls,
  /** The address of a list of calls as a CSV file. */
  csvOfCalls: (query, botId) =>
    `console/${callsPath(botId)}?${new URLSearchParams({ ...query, format: 'csv' })}`,
  summary: (query, botId) => ask(`${callsPath(botId)}/summary?${new URLSearchParams(query)}`),
  call: (callId) => ask(`api/public/calls/${encodeURIComponent(callId)}`),
  capture: (callId) => ask(`api/calls/${encodeURIComponent(callId)}/capture`),
  notifications: (botId, callId) =>
    ask(`${botPath(botId)}/calls/${encodeURIComponent(callId)}/notifications`),
  hangUp: (botId, callId) =>
    ask(`${botPath(botId)}/calls/${encodeURIComponent(callId)}`, { method: 'DELETE' }),
  /**
   * Places a call. If the response is lost, sending the request again doesn't place a second call.
   * For `form`, see `keyFor`. `isGone` returns whether the form has been closed, in which case the
   * user won't see the response.
   */
  dial: async (request, form, isGone = () => false) => {
    try {
      const answer = await ask(dialoutPath(request.botId), {
        method: 'POST',
        body: request,
        headers: { 'idempotency-key': keyFor(request, form) },
      });
      if (isGone()) noteLost(request, form);
      else forgetAttempt(request);
      return answer;
    } catch (error) {
      if (mayHavePlaced(error)) noteLost(request, form);
      else noteRefused(request);
      throw error;
    }
  },
  deadLetters: (query) =>
    ask(`api/public/notifications?${new URLSearchParams({ state: 'failed', ...query })}`),
  replay: (botId, eventId) =>
    ask(`${botPath(botId)}/notifications/${encodeURIComponent(eventId)}/replay`, {
      method: 'POST',
      body: {},
    }),
  /** The metadata of a stored recording, which says where its pauses are. */
  recordingMetadata: (callId) => ask(`api/calls/${encodeURIComponent(callId)}/recording.json`),
  /** Reads a byte of a recording, to find out whether it can be read. */
  probeRecording: (call) =>
    ask(recordingPath(call), {
      headers: { accept: '*/*', range: 'bytes=0-0' },
      read: (response) => response.arrayBuffer(),
    }),
  removeRecording: (call) => ask(recordingPath(call), { method: 'DELETE' }),
  ruleSets: () => ask('api/public/rules'),
  /** Reads a version of a rule set. Default: the current one. */
  ruleSet: (name, version) =>
    ask(`${ruleSetPath(name)}${version === undefined ? '' : `?version=${version}`}`),
  putRuleSet: (name, document) => ask(ruleSetPath(name), { method: 'PUT', body: document }),
  removeRuleSet: (name) => ask(ruleSetPath(name), { method: 'DELETE' }),
  /** Says what the rules would decide about a call now. */
  check: (request) =>
    ask(`${dialoutPath(request.botId)}?check=true`, { method: 'POST', body: request }),
  suppressions: (query) => ask(`api/public/suppressions?${new URLSearchParams(query)}`),
  suppression: (number) => ask(suppressionPath(number)),
  suppress: (number, body) => ask(suppressionPath(number), { method: 'PUT', body }),
  removeSuppression: (number) => ask(suppressionPath(number), { method: 'DELETE' }),
  callers: (query) => ask(`api/public/calls/callers?${new URLSearchParams(query)}`),
  campaigns: (query) => ask(`api/public/campaigns?${new URLSearchParams(query)}`),
  campaign: (name) => ask(`api/public/campaigns/${encodeURIComponent(name)}`),
  receivers: () => ask('api/receivers'),
  /** Makes the calls that wait for a receiver due now. */
  retryReceiver: (origin) => ask('api/receivers/retry', { method: 'POST', body: { origin } }),
  held: () => ask('api/held'),
  sandbox: () => ask('api/sandbox'),
  servers: () => ask('api/operate/servers'),
  trunks: () => ask('api/operate/trunks'),
  trunkTotals: () => ask('api/operate/trunk-totals'),
  nodes: () => ask('api/operate/nodes'),
  detection: () => ask('api/operate/detection'),
};

// ── Live events ───────────────────────────────────────────────────────────────────────────────

/** The event stream's state: `connecting`, `live` or `away`. */
export const liveState = signal('connecting');

const firstWaitMs = 500;
const longestWaitMs = 10_000;
/** The gateway sends a comment every 15 s. */
const longestSilenceMs = 45_000;

const listeners = new Set();
let source;

/**
 * Calls the listener with each event for the app's calls, and with `undefined` when events may have
 * been missed. Returns a function that removes the listener.
 */
export function onEvent(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

const notifyListeners = (event) => {
  for (const listener of listeners) listener(event);
};

/**
 * Opens the event stream. We don't use EventSource, because it needs a listener for each event type
 * and can't deliver types that this page doesn't know.
 */
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

/**
 * Reads events until the connection ends or falls silent. Returns whether the connection was live.
 */
async function followOnce(place, signal) {
  // A dead connection may never be closed, e.g. after a laptop has been asleep or a NAT has lost
  // its state.
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
  // The stream doesn't contain any earlier events, so have the listeners read everything again.
  if (cursor === undefined) notifyListeners(undefined);
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
  if (event === 'reset') notifyListeners(undefined);
  else if (data !== undefined) notifyListeners(JSON.parse(data));
}

function fieldsOf(block) {
  const fields = {};
  for (const line of block.split('\n')) {
    const colon = line.indexOf(': ');
    if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 2);
  }
  return fields;
}
