// What must be known to end a leg from elsewhere, read off the INVITE as it was sent and the 200 that answered it.

import type { StoredLeg } from '../calls/ports.ts';
import { addressList, cseqNumber, tagOf, uriOf } from './sip-headers.ts';
import type { ReceivedResponse, SentRequest } from './srf-types.ts';

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

export function answeredLeg(leg: StoredLeg, response: ReceivedResponse): StoredLeg {
  const remoteTag = tagOf(response.get('To'));
  const remoteTarget = uriOf(response.get('Contact'));
  // The caller's route set is the Record-Route backwards (RFC 3261, 12.1.2).
  const routeSet = [...addressList(response.get('Record-Route'))].reverse();
  return {
    ...leg,
    ...(response.stackDialogId && { dialogId: response.stackDialogId }),
    ...(remoteTag !== undefined && { remoteTag }),
    ...(remoteTarget !== undefined && { remoteTarget }),
    ...(routeSet.length > 0 && { routeSet }),
  };
}
