// Answers the far end's requests inside one of our dialogs, except for BYE, which the leg handles
// itself.

import {
  acceptedTypes,
  allowHeader,
  capabilityHeaders,
  missingExtensions,
} from '../capabilities.ts';
import type { ReceivedRequest, Responder } from '../engine/srf-types.ts';
import { sdpOf, tagOf } from '../sip-headers.ts';
import { agreedSession } from './session-interval.ts';

export type DialogPeer = {
  /**
   * Returns the answer to a new offer, or undefined to reject the offer with 488. `tag` is the far
   * end's.
   */
  onReoffer(sdp: string, tag: string | undefined): string | undefined;
  /** Returns our offer for a re-INVITE without one, or undefined to reject it with 488. */
  onOfferRequested(): string | undefined;
  /** Applies the answer to that offer. Undefined if the ACK contains none. */
  onLateAnswer(sdp: string | undefined): void;
  onDtmf(digit: string, durationMs: number | undefined): void;
  /** Contact from our INVITE. A 2xx to re-INVITE and UPDATE must repeat it (RFC 3261, 12.2.2). */
  contact: string | undefined;
  /** True from our offer in a 200 OK until the ACK that answers it. */
  awaitsAnswer: boolean;
};

export function answerDialogRequest(
  request: ReceivedRequest,
  response: Responder,
  peer: DialogPeer,
): void {
  const missing = request.method === 'ACK' ? undefined : missingExtensions(request);
  if (missing !== undefined) response.send(420, { headers: missing });
  else answerMethod(request, response, peer);
}

function answerMethod(request: ReceivedRequest, response: Responder, peer: DialogPeer): void {
  switch (request.method) {
    case 'INVITE':
      answerInvite(request, response, peer);
      break;
    case 'UPDATE':
      answerUpdate(request, response, peer);
      break;
    case 'ACK':
      applyLateAnswer(request, peer);
      break;
    case 'INFO':
      answerInfo(request, response, peer);
      break;
    case 'OPTIONS':
      response.send(200, { headers: { ...capabilityHeaders, ...acceptedTypes } });
      break;
    default:
      response.send(statusForOther(request.method), { headers: allowHeader });
  }
}

function statusForOther(method: string): number {
  switch (method) {
    // This dialog has no subscription (RFC 6665, section 4.1.3), and we never send reliable
    // provisional responses.
    case 'NOTIFY':
    case 'PRACK':
      return 481;
    case 'REFER':
      return 603;
    default:
      return 501;
  }
}

/** Answers a re-INVITE. If it contains no offer, our 200 OK does (RFC 3261, section 14.2). */
function answerInvite(request: ReceivedRequest, response: Responder, peer: DialogPeer): void {
  const offer = sdpOf(request);
  const body =
    offer === undefined
      ? peer.onOfferRequested()
      : peer.onReoffer(offer, tagOf(request.get('From')));
  // The far end may only start another re-INVITE after its ACK (RFC 3261, section 14.1). If we're
  // still waiting for that ACK, it's lost or late.
  peer.awaitsAnswer = offer === undefined && body !== undefined;
  if (body === undefined) response.send(488);
  else accept(request, response, peer, body);
}

/** Answers an UPDATE, which may contain no offer (RFC 3311). */
function answerUpdate(request: ReceivedRequest, response: Responder, peer: DialogPeer): void {
  const offer = sdpOf(request);
  if (offer === undefined) {
    accept(request, response, peer, undefined);
    return;
  }
  // RFC 3311, section 5.2: two offers would be pending at the same time.
  if (peer.awaitsAnswer) {
    response.send(491);
    return;
  }
  const body = peer.onReoffer(offer, tagOf(request.get('From')));
  if (body === undefined) response.send(488);
  else accept(request, response, peer, body);
}

function accept(
  request: ReceivedRequest,
  response: Responder,
  { contact }: DialogPeer,
  body: string | undefined,
): void {
  const headers: Record<string, string> = {
    ...capabilityHeaders,
    ...agreedSession(request),
    ...(contact !== undefined && { Contact: contact }),
    ...(body !== undefined && { 'Content-Type': 'application/sdp' }),
  };
  response.send(200, { headers, ...(body !== undefined && { body }) });
}

/**
 * Applies the answer in an ACK. The far end only sends one if we made the offer in our 200 OK, so
 * the SDP in any other ACK is ignored.
 */
function applyLateAnswer(request: ReceivedRequest, peer: DialogPeer): void {
  if (!peer.awaitsAnswer) return;
  peer.awaitsAnswer = false;
  peer.onLateAnswer(sdpOf(request));
}

function answerInfo(request: ReceivedRequest, response: Responder, peer: DialogPeer): void {
  const digit = parseDtmfInfo(request.get('Content-Type'), request.body);
  if (digit !== undefined) {
    response.send(200);
    peer.onDtmf(digit.digit, digit.durationMs);
    return;
  }
  // An INFO without a body is a heartbeat (RFC 2976, section 2.2).
  const isHeartbeat = (request.body ?? '').trim() === '';
  // RFC 3261, section 8.2.3: a 415 lists the types that we accept.
  if (isHeartbeat) response.send(200);
  else response.send(415, { headers: acceptedTypes });
}

type InfoDigit = { readonly digit: string; readonly durationMs?: number };

const digitPattern = /^[0-9*#A-D]$/;

// If a key press is longer than this, the key is stuck or the value is nonsense. RFC 4733 senders
// stop at 8 s as well.
const maxDurationMs = 30_000;

/**
 * Parses the DTMF in a SIP INFO: `application/dtmf-relay` (Cisco: `Signal=5`, `Duration=160`) or
 * `application/dtmf` (only the digit).
 * @returns undefined if the body doesn't contain a key
 */
export function parseDtmfInfo(
  contentType: string | undefined,
  body: string | undefined,
): InfoDigit | undefined {
  const type = contentType?.split(';', 1)[0]?.trim().toLowerCase();
  if (type === 'application/dtmf') return digitOf(body);
  if (type !== 'application/dtmf-relay') return undefined;
  const signal = digitOf(/^\s*signal\s*=\s*(\S{1,4})/im.exec(body ?? '')?.[1]);
  const duration = /^\s*duration\s*=\s*(\d{1,6})/im.exec(body ?? '')?.[1];
  if (signal === undefined || duration === undefined) return signal;
  return { ...signal, durationMs: Math.min(Number(duration), maxDurationMs) };
}

function digitOf(text: string | undefined): InfoDigit | undefined {
  const sign = text?.trim().toUpperCase() ?? '';
  // Some gateways send RFC 4733 event codes for star and pound.
  const digit = sign === '10' ? '*' : sign === '11' ? '#' : sign;
  return digitPattern.test(digit) ? { digit } : undefined;
}
