// Builds the INVITE for the engine. The request URI, From and the trunk's headers come from the
// `Route` that `trunks/routing.ts` creates.

import { capabilityHeaders } from '../capabilities.ts';
import type { RequestOptions } from '../engine/srf-types.ts';
import type { Route } from '../trunks/routing.ts';
import { sessionTimerHeaders } from './session-interval.ts';

export function inviteOptions(route: Route, offerSdp: string): RequestOptions {
  return {
    method: 'INVITE',
    uri: route.requestUri,
    headers: {
      ...route.headers,
      From: route.from,
      To: route.to,
      ...(route.contact !== undefined && { Contact: route.contact }),
      ...capabilityHeaders,
      ...(route.sessionTimer !== undefined && sessionTimerHeaders(route.sessionTimer)),
      'Content-Type': 'application/sdp',
    },
    body: offerSdp,
    ...(route.nextHop !== undefined && { proxy: route.nextHop }),
  };
}

/**
 * Merges an application's headers with those of the call's trunk. The trunk's headers may contain
 * an account or identity that the carrier uses for billing, so an application may only replace the
 * ones that the trunk lists in `passHeaders`.
 */
export function mergeHeaders(
  { headers, passHeaders = [] }: Route,
  added: Readonly<Record<string, string>> = {},
): Route['headers'] {
  const isOwn = (name: string) => !passHeaders.includes(name.toLowerCase());
  const kept = new Set(Object.keys(headers).filter(isOwn).map(lowerCase));
  const taken = Object.entries(added).filter(([name]) => !kept.has(lowerCase(name)));
  const replaced = new Set(taken.map(([name]) => lowerCase(name)));
  const own = Object.entries(headers).filter(([name]) => !replaced.has(lowerCase(name)));
  return Object.fromEntries([...own, ...taken]);
}

const lowerCase = (name: string): string => name.toLowerCase();
