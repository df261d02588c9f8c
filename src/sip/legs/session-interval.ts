// Asks for a session timer in the INVITE (RFC 4028). The far end's 200 says whether there is one,
// for how long and who refreshes the session. The engine then does the rest.

import type { ReceivedRequest, ReceivedResponse, RequestOptions } from '../engine/srf-types.ts';
import type { SessionTimer } from '../trunks/trunks.ts';

const expiresHeader = 'Session-Expires';
const minHeader = 'Min-SE';

/** Longer intervals protect nobody, so the 422 that asks for one stands. */
const maxIntervalS = 86_400;

/** Leaves it to the far end to choose who refreshes, as RFC 4028, section 7.1, recommends. */
export function sessionTimerHeaders({ expiresS, minS }: SessionTimer): Record<string, string> {
  return { [expiresHeader]: String(expiresS), [minHeader]: String(minS) };
}

/**
 * Returns the headers for the repetition of an INVITE that was refused because its interval is
 * shorter than the 422's Min-SE (RFC 4028, section 7.4).
 *
 * @returns undefined if the INVITE asked for no session timer, the response isn't such a 422, or
 * its Min-SE makes no sense
 */
export function largerInterval(
  sent: RequestOptions['headers'],
  response: ReceivedResponse,
): Record<string, string> | undefined {
  const expiresS = secondsIn(sent?.[expiresHeader]);
  if (response.status !== 422 || expiresS === undefined) return undefined;
  const minS = secondsIn(response.get(minHeader));
  if (minS === undefined || minS <= expiresS || minS > maxIntervalS) return undefined;
  return sessionTimerHeaders({ expiresS: minS, minS });
}

/**
 * Repeats the far end's choice of the session's interval and refresher (RFC 4028, section 9), which
 * drachtio follows without stating it. Otherwise the far end would take the session timer for
 * switched off. If the far end doesn't choose, we leave the choice to the engine.
 */
export function agreedSession(request: ReceivedRequest): Record<string, string> {
  const chosen = sessionChoice.exec(request.get('Session-Expires') ?? '');
  const [, interval, refresher = ''] = chosen ?? [];
  if (interval === undefined) return {};
  const isRequired =
    refresher === 'uac' || /(?:^|,)\s*timer\s*(?:,|$)/i.test(request.get('Supported') ?? '');
  return {
    'Session-Expires': `${interval};refresher=${refresher}`,
    ...(isRequired && { Require: 'timer' }),
  };
}

const sessionChoice = /^\s*(\d{1,6})\s*;\s*refresher\s*=\s*(uac|uas)\b/;

function secondsIn(header: string | undefined): number | undefined {
  const digits = /^\s*(\d{1,10})\s*(;|$)/.exec(header ?? '')?.[1];
  return digits === undefined ? undefined : Number(digits);
}
