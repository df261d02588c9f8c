// Derives a dialog's remote target and route set from the messages that create or update it (RFC
// 3261 section 12.1).

import { usableRoutes, usableUri } from '../message/request-path.ts';
import { splitOutsideQuotes } from '../message/sip-grammar.ts';
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

/**
 * If the message contains a usable Contact, makes it the dialog's target (RFC 3261 section
 * 12.2.1.2).
 */
export function takeTarget(dialog: Dialog, message: Pick<SipMessage, 'headers'>): void {
  const contact = contactUri(message);
  if (contact === undefined) return;
  dialog.remoteTarget = contact;
  dialog.isTargetAssumed = false;
}

/**
 * Returns the first usable URI of a Contact header. There should be exactly one (RFC 3261 section
 * 8.1.1.8), but a far end that lists several can be reached at any of them.
 */
export function contactUri(message: {
  readonly headers: SipMessage['headers'];
}): string | undefined {
  for (const value of headerValues(message, 'Contact')) {
    for (const entry of splitOutsideQuotes(value, ',')) {
      const uri = usableUri(entry.trim());
      if (uri !== undefined) return uri;
    }
  }
  return undefined;
}

/** True if the message contains a Contact, but none to which we can send requests. */
export function hasUnusableContact(message: { readonly headers: SipMessage['headers'] }): boolean {
  return headerValue(message, 'Contact') !== undefined && contactUri(message) === undefined;
}

export function recordRoutes(message: { readonly headers: SipMessage['headers'] }): string[] {
  return usableRoutes(headerValues(message, 'Record-Route'));
}
