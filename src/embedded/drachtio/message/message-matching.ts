// What ties a message to its transaction, and what it must have before that is asked.

import { parseCseq, parseVia } from './sip-grammar.ts';
import { headerValue, type SipRequest, type SipResponse } from './sip-message.ts';

export function hasAddresses(message: SipResponse): boolean {
  return (
    headerValue(message, 'From') !== undefined &&
    headerValue(message, 'To') !== undefined &&
    headerValue(message, 'Call-ID') !== undefined
  );
}

/** A datagram may be longer than its Content-Length says; the surplus is dropped (RFC 3261 section 18.3). */
export function trimBody<Message extends SipRequest | SipResponse>(message: Message): Message {
  const length = Number(headerValue(message, 'Content-Length') ?? message.body.length);
  if (!Number.isInteger(length) || length < 0 || length >= message.body.length) return message;
  return { ...message, body: message.body.slice(0, length) };
}

/** RFC 3261 section 17.2.3; the sent-by is part of it because branches are made by the far ends. */
export function serverKey(request: SipRequest, method: string): string {
  const value = headerValue(request, 'Via') ?? '';
  const via = parseVia(value);
  const branch = via?.parameters.get('branch');
  const sentBy = `${via?.host ?? ''}:${via?.port ?? ''}`;
  if (branch?.startsWith('z9hG4bK') === true) return `${branch} ${sentBy} ${method}`;
  // RFC 2543 senders: everything that a retransmit has in common with the first.
  const cseq = parseCseq(headerValue(request, 'CSeq') ?? '')?.number ?? 0;
  const callId = headerValue(request, 'Call-ID') ?? '';
  return `${callId} ${cseq} ${headerValue(request, 'From') ?? ''} ${sentBy} ${method}`;
}
