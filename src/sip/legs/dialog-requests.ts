// Answers the far end's requests inside one of our dialogs, except for BYE, which the leg handles
// itself.

import {
  acceptedTypes,
  allowHeader,
  capabilityHeaders,
  missingExtensions,
} from '../capabilities.ts';
import type { ReceivedRequest, Responder } from '../engine/srf-types.ts';
import { sdpOf } from '../sip-headers.ts';

export type DialogPeer = {
  /** Returns the answer to a new offer, or undefined to reject the offer with 488. */
  onReoffer(sdp: string): string | undefined;
  onDtmf(digit: string, durationMs: number | undefined): void;
  /**
   * The last SDP that we sent, as an offer or an answer. If the far end asks for an offer, we send
   * this.
   */
  currentSdp: string;
  /** Contact from our INVITE. A 2xx to re-INVITE and UPDATE must repeat it (RFC 3261, 12.2.2). */
  contact: string | undefined;
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
      answerReoffer(request, response, peer, peer.currentSdp);
      break;
    case 'UPDATE':
      answerReoffer(request, response, peer, undefined);
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

/**
 * Answers a re-INVITE or UPDATE.
 *
 * @param ownOffer SDP to send if the request doesn't contain an offer: the current SDP for INVITE,
 * nothing for UPDATE (RFC 3311)
 */
function answerReoffer(
  request: ReceivedRequest,
  response: Responder,
  peer: DialogPeer,
  ownOffer: string | undefined,
): void {
  const offer = sdpOf(request);
  const body = offer === undefined ? ownOffer : peer.onReoffer(offer);
  if (offer !== undefined && body === undefined) {
    response.send(488);
    return;
  }
  if (body !== undefined) peer.currentSdp = body;
  const { contact } = peer;
  const headers: Record<string, string> = {
    ...capabilityHeaders,
    ...(contact !== undefined && { Contact: contact }),
    ...(body !== undefined && { 'Content-Type': 'application/sdp' }),
  };
  response.send(200, { headers, ...(body !== undefined && { body }) });
}

/**
 * Applies the answer in an ACK, which the far end sends if we made the offer in our 200 OK. The
 * answer changes the media just like an offer does, but we don't send anything back.
 */
function applyLateAnswer(request: ReceivedRequest, peer: DialogPeer): void {
  const answer = sdpOf(request);
  if (answer !== undefined) peer.onReoffer(answer);
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
