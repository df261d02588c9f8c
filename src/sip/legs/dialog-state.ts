// What must be known to end a leg from elsewhere, read off the INVITE as it was sent, the 18x and the 200 that answered it.

import ipaddr from 'ipaddr.js';
import type { StoredLeg } from '../../calls/contract/stored-leg.ts';
import type { ReceivedResponse, SentRequest } from '../engine/srf-types.ts';
import { addressList, cseqNumber, hostOf, tagOf, uriOf } from '../sip-headers.ts';

/** The engine says in its OK what it made of the request: Call-ID, CSeq and From tag are its own. */
export function legOfInvite(invite: SentRequest, engine: string): StoredLeg {
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
  };
}

/** With the early dialog of an 18x (RFC 3261, 12.1), which need not have a Contact. Another branch of a fork is another dialog. */
export function ringingLeg(leg: StoredLeg, response: ReceivedResponse): StoredLeg {
  const remoteTag = tagOf(response.get('To'));
  if (remoteTag === undefined) return leg;
  const known = remoteTag === leg.remoteTag ? leg : withoutDialog(leg);
  return { ...known, remoteTag, ...targetOf(response) };
}

/** drachtio knows the dialog by its name from the 200 on. */
export function answeredLeg(leg: StoredLeg, response: ReceivedResponse): StoredLeg {
  const remoteTag = tagOf(response.get('To'));
  return {
    ...withoutDialog(leg),
    ...(response.stackDialogId && { dialogId: response.stackDialogId }),
    ...(remoteTag !== undefined && { remoteTag }),
    ...targetOf(response),
  };
}

function withoutDialog({ remoteTag, remoteTarget, routeSet, ...leg }: StoredLeg): StoredLeg {
  return leg;
}

function targetOf(response: ReceivedResponse): Pick<StoredLeg, 'remoteTarget' | 'routeSet'> {
  const remoteTarget = uriOf(response.get('Contact'));
  // The caller's route set is the Record-Route backwards (RFC 3261, 12.1.2).
  const recorded = [...addressList(response.get('Record-Route'))].reverse();
  const aroundNat = hopAroundNat(response, recorded[0] ?? remoteTarget);
  const routeSet = aroundNat === undefined ? recorded : [aroundNat, ...recorded];
  return {
    ...(remoteTarget !== undefined && { remoteTarget }),
    ...(routeSet.length > 0 && { routeSet }),
  };
}

/**
 * Where the next hop is a private address that the 200 did not come from, the far end is behind NAT, and drachtio sends
 * within the dialog to where the 200 did come from. A BYE that is built anew must find the same way.
 */
function hopAroundNat(response: ReceivedResponse, nextHop: string | undefined): string | undefined {
  const { source_address: address, source_port: port, protocol } = response;
  const host = hostOf(nextHop);
  if (host === undefined || address === '' || host === address || !isPrivate(host))
    return undefined;
  const transport = protocol === 'udp' ? '' : `;transport=${protocol}`;
  return `sip:${address.includes(':') ? `[${address}]` : address}:${port}${transport}`;
}

function isPrivate(host: string): boolean {
  if (!ipaddr.IPv4.isValidFourPartDecimal(host)) return false;
  const range = ipaddr.IPv4.parse(host).range();
  return range === 'private' || range === 'carrierGradeNat';
}
