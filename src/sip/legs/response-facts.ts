// What a final response says beside its status.

import type { ReceivedResponse } from '../engine/srf-types.ts';
import { retryAfterSeconds } from './failover.ts';

/** Only a 503 says by it that the gateway as a whole wants to be left alone (RFC 3261, section 21.5.4). */
export function retryAfterOf(response: ReceivedResponse): { readonly retryAfterS?: number } {
  const seconds =
    response.status === 503 ? retryAfterSeconds(response.get('Retry-After')) : undefined;
  return seconds === undefined ? {} : { retryAfterS: seconds };
}

export function flawOf(response: ReceivedResponse, sdp: string | undefined): string | undefined {
  if (!response.has('Contact')) return '200 OK without Contact';
  if (!response.stackDialogId) return '200 OK outside a dialog';
  return sdp === undefined ? '200 OK without SDP' : undefined;
}
