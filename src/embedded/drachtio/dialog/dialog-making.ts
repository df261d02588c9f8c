// Derives a dialog's remote target and route set from the messages that create or update it (RFC
// 3261 section 12.1).

import { parseNameAddress, splitOutsideQuotes } from '../message/sip-grammar.ts';
import {
  headerValue,
  headerValues,
  type SipMessage,
  type SipResponse,
} from '../message/sip-message.ts';
import { type Dialog, newDialog } from './dialog.ts';
import type { Outgoing } from './outgoing.ts';

/** Creates the UAC's dialog, based on a response (RFC 3261 section 12.1.2). */
export function dialogOf(outgoing: Outgoing, response: SipResponse, remoteTag: string): Dialog {
  return newDialog({
    id: outgoing.dialogId,
    role: 'uac',
    usage: outgoing.request.method === 'INVITE' ? 'call' : 'subscription',
    callId: outgoing.callId,
    localTag: outgoing.fromTag,
    remoteTag,
    localAddress: headerValue(outgoing.request, 'From') ?? '',
    remoteAddress: headerValue(response, 'To') ?? '',
    peer: outgoing.peer,
    localContact: outgoing.contact,
    remoteTarget: contactUri(response) ?? '',
    routeSet: recordRoutes(response).reverse(),
    localCseq: outgoing.cseq,
    remoteCseq: undefined,
    owner: undefined,
  });
}

export function assumeTarget(dialog: Dialog, requestUri: string): void {
  dialog.remoteTarget = requestUri;
  dialog.isTargetAssumed = true;
}

/** If the message contains a Contact, makes it the dialog's target (RFC 3261 section 12.2.1.2). */
export function takeTarget(dialog: Dialog, message: Pick<SipMessage, 'headers'>): void {
  const contact = contactUri(message);
  if (contact === undefined) return;
  dialog.remoteTarget = contact;
  dialog.isTargetAssumed = false;
}

export function contactUri(message: {
  readonly headers: SipMessage['headers'];
}): string | undefined {
  const value = headerValue(message, 'Contact');
  const uri = value === undefined ? undefined : parseNameAddress(value)?.uri;
  // The URI becomes part of a request line, so it can't contain white space.
  return uri === '' || uri === '*' || /\s/.test(uri ?? '') ? undefined : uri;
}

export function recordRoutes(message: { readonly headers: SipMessage['headers'] }): string[] {
  return headerValues(message, 'Record-Route')
    .flatMap((value) => splitOutsideQuotes(value, ','))
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
}
