// Session timers (RFC 4028). Each 2xx to an INVITE or UPDATE says how long the session lasts and
// who refreshes it. If it's up to the engine, `session-refresh.ts` sends the refreshes without
// involving the application. If it's up to the peer and no refresh arrives, the engine hangs up and
// only then notifies the application.

import type { EngineContext } from '../engine-context.ts';
import type { SipMessage } from '../message/sip-message.ts';
import { transactionLifeMs } from '../transaction/engine-timing.ts';
import type { Dialog } from './dialog.ts';
import type { DialogRequests } from './dialog-requests.ts';
import { parseSessionExpires } from './session-headers.ts';
import { refreshSession, sessionExpired } from './session-refresh.ts';

/**
 * Shortest time in seconds after which the engine refreshes. A far end may state an interval of one
 * second, and mustn't be able to make the engine send two requests a second.
 */
const minRefreshSeconds = 5;

/**
 * Starts the session timer anew after a 2xx, or stops it if the 2xx doesn't contain
 * Session-Expires, which turns the session timer off (RFC 4028 section 7.2).
 *
 * @param localRole the engine's role in the request to which this 2xx is the response
 */
export function armSessionTimer(
  context: EngineContext,
  requests: DialogRequests,
  dialog: Dialog,
  response: { readonly headers: SipMessage['headers'] },
  localRole: 'uac' | 'uas',
): void {
  const { clock, timers } = context;
  clock.clearTimer(dialog.session?.timer);
  dialog.session = undefined;
  const expires = parseSessionExpires(response);
  if (expires === undefined || !context.dialogs.has(dialog)) return;
  const { seconds } = expires;
  const isRefresher = (expires.refresher ?? 'uac') === localRole;
  // If the far end refreshes, it can't reasonably mean less than RFC 4028's minimum of 90 s.
  const waitedSeconds = isRefresher ? seconds : Math.max(seconds, timers.minSessionSeconds);
  const intervalMs = waitedSeconds * timers.sessionSecondMs;
  // Whoever waits for a refresh gives up shortly before the interval ends (RFC 4028 section 10).
  const graceMs = intervalMs - Math.min(transactionLifeMs(timers), intervalMs / 3);
  const session = {
    ...{ seconds, isRefresher, endsAtMs: clock.now() + graceMs },
    timer: undefined as object | undefined,
  };
  dialog.session = session;
  const minRefreshMs = minRefreshSeconds * timers.sessionSecondMs;
  session.timer = isRefresher
    ? clock.setTimer(
        () =>
          refreshSession({
            ...{ context, requests, dialog },
            onRefreshed: (answer) => armSessionTimer(context, requests, dialog, answer, 'uac'),
          }),
        Math.max(intervalMs / 2, minRefreshMs),
      )
    : clock.setTimer(() => requests.hangUp(dialog, sessionExpired), graceMs);
}
