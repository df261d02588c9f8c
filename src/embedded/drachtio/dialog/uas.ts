// Passes requests from the network to the application that owns the dialog, or otherwise to an
// application with a route for the method. The applications' responses are handled in
// `uas-responses.ts`.

import { capabilityHeaders } from '../../../sip/capabilities.ts';
import type { ControlClient } from '../control/control-client.ts';
import type { EngineContext } from '../engine-context.ts';
import { knownMethods } from '../message/request-builder.ts';
import { addressTag, parseCseq } from '../message/sip-grammar.ts';
import { headerValue, type SipRequest, serializeMessage } from '../message/sip-message.ts';
import type { ReceivedRequest } from '../sip-stack.ts';
import type { SipPeer } from '../transport/sip-peer.ts';
import { type Dialog, dialogIdOf } from './dialog.ts';
import { hasUnusableContact, takeTarget } from './dialog-making.ts';
import type { DialogRequests } from './dialog-requests.ts';
import type { Incoming, IncomingTable } from './incoming.ts';
import { answerDirectly, networkMeta } from './network-requests.ts';
import type { Outgoing } from './outgoing.ts';
import type { ReliableProvisionals } from './reliable-provisionals.ts';
import { noteAllowedMethods, parseSessionExpires } from './session-headers.ts';
import { isOurInvitePending } from './session-refresh.ts';
import type { UacResponses } from './uac-responses.ts';

const noSuchCall = { status: 481, reason: 'Call/Transaction Does Not Exist' };
const serverError = { status: 500, reason: 'Server Internal Error' };
const notImplemented = {
  status: 501,
  reason: 'Not Implemented',
  headers: [{ name: 'Allow', value: capabilityHeaders.Allow }],
};
const unavailable = { status: 503, reason: 'Service Unavailable' };

/** Methods that are only valid within a dialog. */
const dialogOnly: ReadonlySet<string> = new Set(['BYE', 'UPDATE', 'PRACK']);
const refreshesTarget: ReadonlySet<string> = new Set(['INVITE', 'UPDATE', 'SUBSCRIBE', 'NOTIFY']);

export type UasParts = {
  readonly requests: DialogRequests;
  readonly responses: UacResponses;
  readonly incoming: IncomingTable;
  readonly reliable: ReliableProvisionals;
};

export class Uas {
  readonly #context: EngineContext;
  readonly #parts: UasParts;

  constructor(context: EngineContext, parts: UasParts) {
    this.#context = context;
    this.#parts = parts;
  }

  receive(received: ReceivedRequest): void {
    const { request } = received;
    received.onAnswerTimeout = () => this.#answerTimedOut(received);
    if (request.method === 'INVITE') this.#answer(received, { status: 100, reason: 'Trying' });
    const localTag = addressTag(headerValue(request, 'To') ?? '');
    if (localTag === undefined) {
      this.#receiveOutside(received);
      return;
    }
    const callId = headerValue(request, 'Call-ID') ?? '';
    const remoteTag = addressTag(headerValue(request, 'From') ?? '') ?? '';
    const dialog = this.#context.dialogs.byTags(callId, localTag, remoteTag);
    if (dialog !== undefined) {
      this.#receiveInside(received, dialog);
      return;
    }
    const early = this.#parts.responses.earlyCall(callId, localTag);
    if (early !== undefined && request.method !== 'INVITE') {
      this.#receiveEarly(received, early);
      return;
    }
    this.#answer(received, noSuchCall);
  }

  /**
   * Responds to the CANCEL with 200 and to the INVITE with 487, both with the same tag (RFC 3261
   * section 9.2).
   */
  receiveCancel(cancel: ReceivedRequest, invite: ReceivedRequest | undefined): void {
    const incoming = invite === undefined ? undefined : this.#parts.incoming.byReceived(invite);
    if (invite === undefined) {
      this.#answer(cancel, noSuchCall);
      return;
    }
    const tag = incoming?.toTag ?? this.#context.identifiers.tag();
    this.#answer(cancel, { status: 200, reason: 'OK' }, tag);
    if (invite.transaction.state !== 'proceeding') return;
    this.#answer(invite, { status: 487, reason: 'Request Terminated' }, tag);
    if (incoming === undefined) return;
    this.#drop(incoming);
    const text = serializeMessage(cancel.request);
    this.#context.reports.stop('network', 'call-canceled', text);
    incoming.client.notify({
      meta: networkMeta(this.#context, cancel.peer, cancel.bytes, cancel.peer.protocol),
      transactionId: incoming.transactionId,
      dialogId: incoming.callDialogId,
      text,
    });
  }

  receiveAck(ack: SipRequest, peer: SipPeer, bytes: number): void {
    const localTag = addressTag(headerValue(ack, 'To') ?? '');
    const remoteTag = addressTag(headerValue(ack, 'From') ?? '') ?? '';
    if (localTag === undefined) return;
    const callId = headerValue(ack, 'Call-ID') ?? '';
    const dialog = this.#context.dialogs.byTags(callId, localTag, remoteTag);
    const awaited = dialog?.awaitingAck;
    const cseq = parseCseq(headerValue(ack, 'CSeq') ?? '')?.number;
    if (dialog === undefined || awaited === undefined || awaited.cseq !== cseq) return;
    dialog.awaitingAck = undefined;
    if (!awaited.acknowledge()) return;
    dialog.owner?.notify({
      // Like drachtio-server, we leave the protocol empty for an ACK.
      meta: networkMeta(this.#context, peer, bytes, ''),
      transactionId: awaited.transactionId,
      dialogId: dialog.id,
      text: serializeMessage(ack),
    });
  }

  /**
   * Responds to the pending requests of an application that has disconnected, because otherwise the
   * callers would never receive a response.
   */
  releaseClient(client: ControlClient): void {
    for (const incoming of this.#parts.incoming.ofClient(client)) {
      this.#drop(incoming);
      const verdict = incoming.dialog === undefined ? unavailable : noSuchCall;
      this.#answer(incoming.received, verdict, incoming.toTag);
    }
  }

  #receiveOutside(received: ReceivedRequest): void {
    const { request } = received;
    if (dialogOnly.has(request.method)) {
      this.#answer(received, noSuchCall);
      return;
    }
    if (this.#refuse(received, undefined)) return;
    const client = this.#context.routes.next(request.method.toLowerCase());
    if (client === undefined) {
      this.#answer(received, knownMethods.has(request.method) ? unavailable : notImplemented);
      return;
    }
    if (request.method === 'INVITE') {
      this.#context.reports.attempt('network', serializeMessage(request));
    }
    this.#handOver(received, client, undefined);
  }

  #receiveInside(received: ReceivedRequest, dialog: Dialog): void {
    const { request } = received;
    const cseq = parseCseq(headerValue(request, 'CSeq') ?? '')?.number ?? 0;
    // The request is older than the last one that we've received (RFC 3261 section 12.2.2).
    if (dialog.remoteCseq !== undefined && cseq < dialog.remoteCseq) {
      this.#answer(received, serverError);
      return;
    }
    dialog.remoteCseq = cseq;
    const owner = dialog.owner;
    if (request.method === 'BYE') {
      this.#parts.requests.forget(dialog);
      this.#context.reports.stop('network', 'normal-release', serializeMessage(request));
    }
    if (owner?.alive !== true) {
      this.#answer(received, noSuchCall);
      return;
    }
    if (this.#refuse(received, dialog)) return;
    noteAllowedMethods(dialog, request);
    if (request.method === 'INVITE') dialog.peerInvite = received.transaction;
    if (refreshesTarget.has(request.method)) takeTarget(dialog, request);
    if (request.method === 'PRACK') {
      this.#parts.reliable.acknowledge(headerValue(request, 'RAck') ?? '', dialog);
    }
    this.#handOver(received, owner, dialog);
  }

  /**
   * Handles a request that arrives before the dialog has been created. We pass such requests to the
   * application one at a time, under the INVITE's transaction id.
   */
  #receiveEarly(received: ReceivedRequest, outgoing: Outgoing): void {
    if (outgoing.earlyRequest !== undefined) {
      this.#answer(received, serverError);
      return;
    }
    if (!outgoing.client.alive) {
      this.#answer(received, noSuchCall);
      return;
    }
    outgoing.earlyRequest = received;
    received.onTerminated = () => {
      if (outgoing.earlyRequest === received) outgoing.earlyRequest = undefined;
    };
    const { peer, bytes, request } = received;
    outgoing.client.notify({
      meta: networkMeta(this.#context, peer, bytes, peer.protocol),
      transactionId: outgoing.transactionId,
      dialogId: outgoing.dialogId,
      text: serializeMessage(request),
    });
  }

  #handOver(received: ReceivedRequest, client: ControlClient, dialog: Dialog | undefined): void {
    const { request, peer, bytes } = received;
    const callId = headerValue(request, 'Call-ID') ?? '';
    const fromTag = addressTag(headerValue(request, 'From') ?? '') ?? '';
    const incoming: Incoming = {
      transactionId: this.#context.identifiers.uuid(),
      received,
      client,
      dialog,
      callDialogId: dialog?.id ?? dialogIdOf(callId, fromTag),
      toTag: undefined,
      madeDialog: false,
    };
    this.#parts.incoming.add(incoming);
    received.onTerminated = () => this.#drop(incoming);
    const { host, port } = this.#context.local;
    client.notify({
      meta: networkMeta(this.#context, peer, bytes, peer.protocol),
      transactionId: incoming.transactionId,
      dialogId: dialog?.id ?? '',
      ...(dialog === undefined ? { local: { host, port } } : {}),
      text: serializeMessage(request),
    });
  }

  /** Answers a request that the application needn't see. Returns false if the application must. */
  #refuse(received: ReceivedRequest, dialog: Dialog | undefined): boolean {
    if (dialog !== undefined && this.#refuseGlare(received, dialog)) return true;
    return this.#refuseContact(received) || this.#refuseShortSession(received, dialog);
  }

  /**
   * Rejects an offer that crosses our own INVITE, which includes a session refresh that the
   * application doesn't know about (RFC 3261 section 14.2 and RFC 3311 section 5.2).
   */
  #refuseGlare(received: ReceivedRequest, dialog: Dialog): boolean {
    const { method, body } = received.request;
    const offers = method === 'INVITE' || (method === 'UPDATE' && body !== '');
    if (!offers || !isOurInvitePending(dialog)) return false;
    this.#answer(received, { status: 491, reason: 'Request Pending' });
    return true;
  }

  /**
   * Rejects a new target to which we couldn't send any requests (RFC 3261 section 8.1.1.8). The
   * dialog keeps the target that it has.
   */
  #refuseContact(received: ReceivedRequest): boolean {
    const { request } = received;
    const makesTarget = request.method === 'INVITE' || request.method === 'UPDATE';
    if (!makesTarget || !hasUnusableContact(request)) return false;
    this.#answer(received, { status: 400, reason: 'Unusable Contact' });
    return true;
  }

  /**
   * Rejects a session interval that's too short (RFC 4028 section 6). Like drachtio's SIP stack, we
   * do this without involving the application.
   */
  #refuseShortSession(received: ReceivedRequest, dialog: Dialog | undefined): boolean {
    const { request } = received;
    if (request.method !== 'INVITE' && request.method !== 'UPDATE') return false;
    const { timers } = this.#context;
    const asked = parseSessionExpires(request);
    const minimum = Math.max(timers.minSessionSeconds, dialog?.minSessionSeconds ?? 0);
    if (asked === undefined || asked.seconds >= minimum) return false;
    const headers = [{ name: 'Min-SE', value: String(minimum) }];
    const verdict = { status: 422, reason: 'Session Interval Too Small', headers };
    this.#answer(received, verdict);
    return true;
  }

  #answer(
    received: ReceivedRequest,
    verdict: Parameters<typeof answerDirectly>[2],
    tag?: string,
  ): void {
    answerDirectly(this.#context, received, verdict, tag);
  }

  #answerTimedOut(received: ReceivedRequest): void {
    if (received.request.method !== 'INVITE') return;
    const tag = this.#parts.incoming.byReceived(received)?.toTag;
    this.#answer(received, { status: 408, reason: 'Request Timeout' }, tag);
  }

  #drop(incoming: Incoming): void {
    this.#parts.incoming.remove(incoming);
    this.#parts.reliable.stop(incoming.transactionId);
    const { dialog } = incoming;
    if (incoming.madeDialog && dialog?.state === 'early') {
      this.#parts.requests.forget(dialog);
    }
  }
}
