// Handles a 200 OK for a call that was placed by an earlier engine on this port, which has since
// died. The phone kept ringing and someone picked up, but there's no application left that could
// acknowledge or end the call. So we acknowledge the 200 OK and hang up. (drachtio-server drops the
// 200 OK.)

import type { EngineContext } from '../engine-context.ts';
import { localUri } from '../message/local-identity.ts';
import { addressTag, formatHostPort, parseCseq, parseVia } from '../message/sip-grammar.ts';
import { headerValue, type SipResponse } from '../message/sip-message.ts';
import type { SipPeer } from '../transport/sip-peer.ts';
import { defaultSipPort } from '../transport/sip-target.ts';
import { dialogIdOf, newDialog } from './dialog.ts';
import { contactUri, recordRoutes } from './dialog-making.ts';
import { type DialogRequests, emptySketch, silentUser } from './dialog-requests.ts';

/**
 * Maximum number of a dead engine's calls to keep track of. Each of them is kept for as long as its
 * 200 OK may be retransmitted.
 */
const maxRemembered = 5_000;

type LateCall = {
  readonly id: string;
  readonly callId: string;
  readonly localTag: string;
  readonly remoteTag: string;
  readonly from: string;
  readonly to: string;
  readonly remoteTarget: string;
  readonly response: SipResponse;
  readonly cseq: number;
};

export class LateAnswers {
  readonly #context: EngineContext;
  readonly #requests: DialogRequests;
  /**
   * The ACK for each call, by Call-ID and tags. We keep it because the far end retransmits the 200
   * OK until an ACK arrives.
   */
  readonly #acks = new Map<string, string>();

  constructor(context: EngineContext, requests: DialogRequests) {
    this.#context = context;
    this.#requests = requests;
  }

  /**
   * Handles a response that doesn't belong to any transaction. Returns false if the response isn't
   * addressed to this engine, or if the call has a dialog.
   */
  receive(response: SipResponse, peer: SipPeer): boolean {
    const call = this.#callOf(response, peer);
    if (call === undefined) return false;
    const key = `${call.callId}\n${call.localTag}\n${call.remoteTag}`;
    const known = this.#acks.get(key);
    if (known !== undefined) this.#context.stack.sendDirectly(peer, known);
    else if (this.#acks.size < maxRemembered) this.#hangUp(key, call, peer);
    return true;
  }

  #callOf(response: SipResponse, peer: SipPeer): LateCall | undefined {
    const cseq = parseCseq(headerValue(response, 'CSeq') ?? '');
    if (cseq?.method !== 'INVITE' || response.status < 200 || response.status > 299)
      return undefined;
    if (!this.#isAddressedHere(response)) return undefined;
    const from = headerValue(response, 'From') ?? '';
    const to = headerValue(response, 'To') ?? '';
    const callId = headerValue(response, 'Call-ID') ?? '';
    const localTag = addressTag(from);
    const remoteTag = addressTag(to);
    if (callId === '' || localTag === undefined || remoteTag === undefined) return undefined;
    const id = dialogIdOf(callId, localTag);
    // The call has a dialog, so this is just a late retransmission.
    if (this.#context.dialogs.byTags(callId, localTag, remoteTag) !== undefined) return undefined;
    const remoteTarget = contactUri(response) ?? `sip:${formatHostPort(peer.address, peer.port)}`;
    return { id, callId, localTag, remoteTag, from, to, remoteTarget, response, cseq: cseq.number };
  }

  /**
   * A response repeats the Via of its request. If that Via contains our address and port, the
   * INVITE must have been sent by an engine on this port.
   */
  #isAddressedHere(response: SipResponse): boolean {
    const via = parseVia(headerValue(response, 'Via') ?? '');
    const { host, port } = this.#context.local;
    return via?.host === host && (via.port ?? defaultSipPort) === port;
  }

  /**
   * Sends ACK and BYE to the address that the 200 OK came from. We never use an address in the 200
   * OK itself.
   */
  #hangUp(key: string, call: LateCall, peer: SipPeer): void {
    const { clock, timers, localFor } = this.#context;
    const dialog = newDialog({
      id: call.id,
      role: 'uac',
      usage: 'call',
      callId: call.callId,
      localTag: call.localTag,
      remoteTag: call.remoteTag,
      localAddress: call.from,
      remoteAddress: call.to,
      peer,
      localContact: `<${localUri(localFor(peer), peer.protocol)}>`,
      remoteTarget: call.remoteTarget,
      routeSet: recordRoutes(call.response).reverse(),
      localCseq: call.cseq,
      remoteCseq: undefined,
      owner: undefined,
    });
    this.#acks.set(key, this.#requests.sendAck(dialog, peer, call.cseq, emptySketch('ACK')));
    clock.setTimer(() => this.#acks.delete(key), 64 * timers.t1Ms);
    const reason = { name: 'Reason', value: 'SIP;cause=200;text="Call of an earlier engine"' };
    const bye = { ...emptySketch('BYE'), headers: [reason] };
    this.#requests.send(dialog, peer, bye, silentUser);
  }
}
