// Functions for responding to requests from the network.

import type { MessageMeta } from '../control/control-messages.ts';
import type { EngineContext } from '../engine-context.ts';
import { type SipHeader, serializeMessage } from '../message/sip-message.ts';
import { buildResponse } from '../message/sip-replies.ts';
import type { ReceivedRequest } from '../sip-stack.ts';
import type { SipPeer } from '../transport/sip-peer.ts';

export type Verdict = {
  readonly status: number;
  readonly reason: string;
  readonly headers?: readonly SipHeader[];
};

/** Responds to a request without involving an application. */
export function answerDirectly(
  context: EngineContext,
  received: ReceivedRequest,
  verdict: Verdict,
  tag?: string,
): void {
  const { status, reason, headers = [] } = verdict;
  const toTag = status === 100 ? {} : { toTag: tag ?? context.identifiers.tag() };
  const response = buildResponse(received.request, status, reason, { ...toTag, headers });
  received.transaction.respond(status, serializeMessage(response));
}

export function networkMeta(
  context: EngineContext,
  peer: SipPeer,
  bytes: number,
  protocol: string,
): MessageMeta {
  return {
    source: 'network',
    bytes,
    protocol,
    address: peer.address,
    port: peer.port,
    timeMs: context.clock.now(),
  };
}
