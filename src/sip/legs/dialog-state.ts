// Collects the state that another process needs to end a leg. The sources are the INVITE as it was
// sent, and the 18x and 200 responses.

import ipaddr from 'ipaddr.js';
import type { StoredLeg } from '../../calls/contract/stored-leg.ts';
import type { ReceivedResponse, SentRequest } from '../engine/srf-types.ts';
import {
  addressList,
  contactTarget,
  cseqNumber,
  hostOf,
  isSipUri,
  tagOf,
  uriOf,
} from '../sip-headers.ts';
import type { Route } from '../trunks/routing.ts';
import { namesTlsIdentity } from '../trunks/trunk-uris.ts';

/**
 * Returns the stored leg for an INVITE. `invite` is the request as the engine sent it, because the
 * engine chose the Call-ID, CSeq and From tag, and reported them in its OK.
 */
export function legFromInvite(
  invite: SentRequest,
  engine: string,
  { trunk, nextHop }: Pick<Route, 'trunk' | 'nextHop'>,
): StoredLeg {
  const localTag = tagOf(invite.get('From'));
  const localUri = uriOf(invite.get('From'));
  const remoteUri = uriOf(invite.get('To'));
  const inviteCseq = cseqNumber(invite.get('CSeq'));
  return {
    engine,
    sipCallId: invite.get('Call-ID') ?? '',
    transactionId: invite.stackTxnId,
    requestUri: invite.uri,
    ...(localTag !== undefined && { localTag }),
    ...(localUri !== undefined && { localUri }),
    ...(remoteUri !== undefined && { remoteUri }),
    ...(inviteCseq !== undefined && { inviteCseq }),
    ...(trunk !== undefined && { trunk }),
    ...(nextHop !== undefined && namesTlsIdentity(nextHop) && { tlsHop: nextHop }),
  };
}

/**
 * Adds the early dialog from an 18x (RFC 3261, 12.1), which may lack a Contact. A new To tag means
 * that this is another branch of a fork, and therefore another dialog.
 */
export function ringingLeg(leg: StoredLeg, response: ReceivedResponse): StoredLeg {
  const remoteTag = tagOf(response.get('To'));
  if (remoteTag === undefined) return leg;
  const known = remoteTag === leg.remoteTag ? leg : withoutDialog(leg);
  return { ...known, remoteTag, ...targetOf(response) };
}

/**
 * Adds the confirmed dialog from a 200 OK. From then on, drachtio knows the dialog by its dialog
 * id.
 */
export function answeredLeg(leg: StoredLeg, response: ReceivedResponse): StoredLeg {
  const remoteTag = tagOf(response.get('To'));
  return {
    ...withoutDialog(leg),
    ...(response.stackDialogId && { dialogId: response.stackDialogId }),
    ...(remoteTag !== undefined && { remoteTag }),
    ...targetOf(response),
  };
}

function withoutDialog({
  remoteTag,
  remoteTarget,
  routeSet,
  nextHop,
  ...leg
}: StoredLeg): StoredLeg {
  return leg;
}

function targetOf(
  response: ReceivedResponse,
): Pick<StoredLeg, 'remoteTarget' | 'routeSet' | 'nextHop'> {
  const remoteTarget = contactTarget(response.get('Contact'));
  // The caller's route set is the Record-Route in reverse order (RFC 3261, 12.1.2). Nobody can send
  // to an entry like `tel:`, but the rest of the route may still lead to the far end.
  const recorded = addressList(response.get('Record-Route')).filter(isSipUri).reverse();
  const routeSet = recorded.slice(0, maxStoredRoutes);
  const nextHop = differentHop(response, routeSet[0] ?? remoteTarget);
  return {
    ...(remoteTarget !== undefined && { remoteTarget }),
    ...(routeSet.length > 0 && { routeSet }),
    ...(nextHop !== undefined && { nextHop }),
  };
}

/** The contract of a stored leg doesn't allow more. No carrier has that many proxies. */
const maxStoredRoutes = 20;

/**
 * Returns the address to which we must send a rebuilt BYE if that isn't the next hop.
 * - If the far end is behind NAT, the next hop is a private address, but the response came from a
 *   different one. drachtio sends requests within the dialog to the address that the 200 came from,
 *   and a rebuilt BYE must take the same path.
 * - If a 200 has no usable Contact, only its sender is known to reach the far end.
 */
function differentHop(response: ReceivedResponse, nextHop: string | undefined): string | undefined {
  const sender = senderOf(response);
  if (nextHop === undefined) return response.status < 200 ? undefined : sender;
  const host = hostOf(nextHop);
  if (host === undefined || host === response.source_address || !isPrivate(host)) return undefined;
  return sender;
}

/** @returns undefined if the SIP stack generated the response */
function senderOf(response: ReceivedResponse): string | undefined {
  const { source_address: address, source_port: port, protocol } = response;
  if (address === '') return undefined;
  const transport = protocol === 'udp' || protocol === '' ? '' : `;transport=${protocol}`;
  return `sip:${address.includes(':') ? `[${address}]` : address}:${port}${transport}`;
}

function isPrivate(host: string): boolean {
  if (!ipaddr.IPv4.isValidFourPartDecimal(host)) return false;
  const range = ipaddr.IPv4.parse(host).range();
  return range === 'private' || range === 'carrierGradeNat';
}
