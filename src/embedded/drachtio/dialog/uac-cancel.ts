// CANCEL (RFC 3261 section 9). The engine sends a CANCEL if the application asks for one or
// disconnects, or if a call has been ringing for too long. A CANCEL can't be sent before a
// provisional response has arrived, and after a 2xx it's too late, so the engine hangs up instead.

import type { ControlClient } from '../control/control-client.ts';
import type { SipText } from '../control/control-messages.ts';
import type { EngineContext } from '../engine-context.ts';
import { unbracketedTo } from '../message/request-builder.ts';
import {
  headerValue,
  type SipHeader,
  type SipRequest,
  serializeMessage,
  withHeader,
} from '../message/sip-message.ts';
import { buildCancel } from '../message/sip-replies.ts';
import { appHeaders, decidedHeaders } from './app-headers.ts';
import { type DialogRequests, silentUser } from './dialog-requests.ts';
import type { Outgoing } from './outgoing.ts';
import type { UacResponses } from './uac-responses.ts';

export class UacCancel {
  readonly #context: EngineContext;
  readonly #requests: DialogRequests;
  readonly #responses: UacResponses;

  constructor(context: EngineContext, requests: DialogRequests, responses: UacResponses) {
    this.#context = context;
    this.#requests = requests;
    this.#responses = responses;
    responses.onRingTimeout = (outgoing) => {
      this.#sendCancel(outgoing, buildCancel(outgoing.request, []));
    };
    responses.onProvisional = (outgoing) => {
      if (outgoing.cancel.state === 'waiting') this.#sendCancel(outgoing, outgoing.cancel.text);
    };
  }

  cancel(client: ControlClient, messageId: string, transactionId: string, sketch: SipText): void {
    const outgoing = this.#responses.byTransaction(transactionId);
    const state = outgoing?.sent?.transaction.state;
    if (outgoing === undefined || outgoing.request.method !== 'INVITE') {
      client.refuse(messageId, `unable to cancel unknown transaction id: ${transactionId}`);
      return;
    }
    if (!outgoing.client.alive) outgoing.client = client;
    const given = appHeaders(sketch, this.#context.local, decidedHeaders);
    const request = buildCancel(outgoing.request, given.headers);
    if (state === 'proceeding' && outgoing.cancel.state === 'none') {
      this.#replyCancelled(client, messageId, outgoing, this.#sendCancel(outgoing, request));
      return;
    }
    if (state === 'calling') {
      if (outgoing.cancel.state === 'none') outgoing.cancel = { state: 'waiting', text: request };
    } else if (outgoing.dialog?.unacknowledged?.transactionId === transactionId) {
      // The 2xx was faster than this command, so we'll send a BYE after the application's ACK.
      outgoing.dialog.state = 'cancelled';
    } else if (state !== 'proceeding') {
      client.refuse(messageId, `unable to cancel unknown transaction id: ${transactionId}`);
      return;
    }
    this.#replyCancelled(client, messageId, outgoing, undefined, request);
  }

  /**
   * Cancels the pending calls of an application that has disconnected, because otherwise the phones
   * would continue to ring although nobody is calling.
   */
  cancelCallsOf(client: ControlClient): void {
    for (const outgoing of this.#responses.pendingCallsOf(client)) {
      if (outgoing.cancel.state !== 'none') continue;
      const request = buildCancel(outgoing.request, [applicationGoneReason]);
      const state = outgoing.sent?.transaction.state;
      if (state === 'proceeding') this.#sendCancel(outgoing, request);
      else if (state === 'calling') outgoing.cancel = { state: 'waiting', text: request };
    }
  }

  #sendCancel(outgoing: Outgoing, request: SipRequest): SipRequest {
    if (outgoing.cancel.state === 'sent') return request;
    outgoing.cancel = { state: 'sent' };
    this.#context.stack.sendRequest(request, outgoing.peer, silentUser);
    const transaction = outgoing.sent?.transaction;
    if (transaction !== undefined && 'expectFinalSoon' in transaction)
      transaction.expectFinalSoon();
    this.#context.reports.stop('application', 'call-canceled', serializeMessage(request));
    return request;
  }

  /**
   * Reports the CANCEL to the application. The byte count is 0 if we're still waiting for a
   * provisional response.
   */
  #replyCancelled(
    client: ControlClient,
    messageId: string,
    outgoing: Outgoing,
    sent: SipRequest | undefined,
    waiting?: SipRequest,
  ): void {
    const request = sent ?? waiting;
    if (request === undefined) return;
    const shown =
      sent ?? withHeader(request, 'To', unbracketedTo(headerValue(request, 'To') ?? ''));
    const text = serializeMessage(shown);
    client.requestSent(messageId, {
      meta: this.#requests.sentMeta(outgoing.peer, sent === undefined ? 0 : text.length),
      transactionId: this.#context.identifiers.uuid(),
      text,
    });
  }
}

/** See RFC 3326 for the Reason header. */
const applicationGoneReason: SipHeader = { name: 'Reason', value: 'SIP;text="Application gone"' };
