// The headers of session timers (RFC 4028): what a message says about the session's interval and
// about who refreshes it, and what the engine adds to its own requests and 2xx responses.

import { parseDecimal, parseParameters } from '../message/sip-grammar.ts';
import { headerValue, headerValues, type SipHeader } from '../message/sip-message.ts';
import type { SipTimers } from '../transaction/engine-timing.ts';
import type { Dialog } from './dialog.ts';

type WithHeaders = { readonly headers: readonly SipHeader[] };
type Refresher = 'uac' | 'uas';

export type SessionExpires = {
  readonly seconds: number;
  readonly refresher: Refresher | undefined;
};

/** Returns undefined if the message doesn't contain a Session-Expires that we understand. */
export function parseSessionExpires(message: WithHeaders): SessionExpires | undefined {
  const value = headerValue(message, 'Session-Expires');
  if (value === undefined) return undefined;
  const semicolon = value.indexOf(';');
  const seconds = parseSeconds(semicolon < 0 ? value : value.slice(0, semicolon));
  if (seconds === undefined) return undefined;
  const refresher = parseParameters(semicolon < 0 ? '' : value.slice(semicolon)).get('refresher');
  return { seconds, refresher: asRefresher(refresher?.toLowerCase()) };
}

/** Returns the shortest interval in seconds that the sender of the message accepts. */
export function parseMinSe(message: WithHeaders): number | undefined {
  const value = headerValue(message, 'Min-SE');
  return value === undefined ? undefined : parseSeconds(value.split(';', 1)[0] ?? '');
}

function parseSeconds(text: string): number | undefined {
  const seconds = parseDecimal(text.trim(), 6);
  return seconds === 0 ? undefined : seconds;
}

function asRefresher(text: string | undefined): Refresher | undefined {
  return text === 'uac' || text === 'uas' ? text : undefined;
}

/** Whether a header that lists tokens (Supported, Require, Allow) contains the token. */
export function listsToken(message: WithHeaders, name: string, token: string): boolean {
  return headerValues(message, name)
    .flatMap((value) => value.split(','))
    .some((entry) => entry.trim().toLowerCase() === token.toLowerCase());
}

/** Remembers whether the far end accepts UPDATE, if the message says so (RFC 3261 section 20.5). */
export function noteAllowedMethods(dialog: Dialog, message: WithHeaders): void {
  if (headerValue(message, 'Allow') === undefined) return;
  dialog.allowsUpdate = listsToken(message, 'Allow', 'UPDATE');
}

/**
 * Returns what a session refresh request of ours must contain (RFC 4028 section 7.4).
 *
 * @param given the application's headers, which take precedence
 */
export function requestSessionHeaders(
  dialog: Dialog,
  timers: SipTimers,
  given: readonly SipHeader[] = [],
): SipHeader[] {
  const { session } = dialog;
  const message = { headers: given };
  if (session === undefined || headerValue(message, 'Session-Expires') !== undefined) return [];
  const minimum = Math.max(timers.minSessionSeconds, dialog.minSessionSeconds);
  const seconds = Math.max(session.seconds, minimum);
  const refresher = session.isRefresher ? 'uac' : 'uas';
  return [
    { name: 'Session-Expires', value: `${seconds};refresher=${refresher}` },
    ...added(message, 'Min-SE', String(minimum)),
    ...(listsToken(message, 'Supported', 'timer') ? [] : [{ name: 'Supported', value: 'timer' }]),
  ];
}

/**
 * Returns what the engine adds to the application's 2xx for an INVITE or UPDATE (RFC 4028 section
 * 9), so that the far end learns who refreshes the session. Without Session-Expires, the far end
 * would take the session timer for switched off.
 *
 * @param given the application's headers, which take precedence
 * @param dialog undefined if the 2xx is going to create the dialog
 */
export function answerSessionHeaders(
  request: WithHeaders,
  dialog: Dialog | undefined,
  given: readonly SipHeader[],
): SipHeader[] {
  const message = { headers: given };
  const chosen = parseSessionExpires(message);
  const agreed = chosen ?? agreedSession(request, dialog);
  if (agreed === undefined) return [];
  const refresher = agreed.refresher ?? 'uac';
  // A caller that refreshes has to know it, so it must understand the header. For a caller that
  // doesn't, RFC 4028 section 9 recommends the same if the caller supports session timers.
  const isRequired = refresher === 'uac' || listsToken(request, 'Supported', 'timer');
  return [
    ...(chosen !== undefined
      ? []
      : [{ name: 'Session-Expires', value: `${agreed.seconds};refresher=${refresher}` }]),
    ...(isRequired && !listsToken(message, 'Require', 'timer')
      ? [{ name: 'Require', value: 'timer' }]
      : []),
    ...(listsToken(message, 'Supported', 'timer') ? [] : [{ name: 'Supported', value: 'timer' }]),
  ];
}

/**
 * Decides about the interval and the refresher as RFC 4028 table 2 does: the caller's choice holds.
 * If the caller doesn't choose, whoever has refreshed so far continues, and only a caller that
 * supports session timers can be the refresher.
 */
function agreedSession(
  request: WithHeaders,
  dialog: Dialog | undefined,
): SessionExpires | undefined {
  const asked = parseSessionExpires(request);
  const session = dialog?.session;
  if (asked === undefined && session === undefined) return undefined;
  const minimum = parseMinSe(request) ?? 0;
  const seconds = asked?.seconds ?? Math.max(session?.seconds ?? 0, minimum);
  if (asked?.refresher !== undefined) return { seconds, refresher: asked.refresher };
  const canRefresh = listsToken(request, 'Supported', 'timer');
  const refresher = session?.isRefresher === true || !canRefresh ? 'uas' : 'uac';
  return { seconds, refresher };
}

function added(message: WithHeaders, name: string, value: string): SipHeader[] {
  return headerValue(message, name) === undefined ? [{ name, value }] : [];
}
