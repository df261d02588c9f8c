// The application's requests outside dialogs. Requests inside dialogs are in `uac-dialog.ts`,
// CANCEL is in `uac-cancel.ts`, and the responses to all of them are in `uac-responses.ts`.

import type { ControlClient } from '../control/control-client.ts';
import type { SipText } from '../control/control-messages.ts';
import type { EngineContext } from '../engine-context.ts';
import { isSelf } from '../message/local-identity.ts';
import {
  type BuiltRequest,
  buildRequest,
  firstCseq,
  parseSketchLine,
  type RequestLine,
  unbracketedTo,
  wantsContact,
} from '../message/request-builder.ts';
import { addressTag, parseSipUri } from '../message/sip-grammar.ts';
import { headerValue, serializeMessage, withHeader } from '../message/sip-message.ts';
import type { SipPeer } from '../transport/sip-peer.ts';
import { type Target, type TargetPeer, targetOf, targetOfRoute } from '../transport/sip-target.ts';
import { dialogIdOf } from './dialog.ts';
import type { DialogRequests } from './dialog-requests.ts';
import { newOutgoing, type Outgoing } from './outgoing.ts';
import { notForAck, type UacDialog } from './uac-dialog.ts';
import type { UacResponses } from './uac-responses.ts';

/** Stands for a destination whose name doesn't resolve. */
const nowhere: SipPeer = { protocol: 'udp', address: '', port: 0 };

type NewRequest = {
  readonly client: ControlClient;
  readonly messageId: string;
  readonly line: RequestLine;
  readonly sketch: SipText;
};

export type UacParts = {
  readonly requests: DialogRequests;
  readonly responses: UacResponses;
  readonly inDialog: UacDialog;
};

export class Uac {
  readonly #context: EngineContext;
  readonly #requests: DialogRequests;
  readonly #responses: UacResponses;

  readonly #inDialog: UacDialog;

  constructor(context: EngineContext, parts: UacParts) {
    this.#context = context;
    this.#requests = parts.requests;
    this.#responses = parts.responses;
    this.#inDialog = parts.inDialog;
  }

  /** Executes `sip||`, which is a request outside any dialog. */
  sendNew(client: ControlClient, messageId: string, sketch: SipText, route: string): void {
    const known = knownDialogId(sketch);
    if (known !== undefined && this.#context.dialogs.byId(known) !== undefined) {
      this.#inDialog.send(client, messageId, known, sketch);
      return;
    }
    const line = parseSketchLine(sketch.startLine);
    if (line?.method === 'ACK') {
      client.refuse(messageId, notForAck);
      return;
    }
    const target = line === undefined ? undefined : newTarget(line, route);
    if (line === undefined || target === undefined || target.kind === 'invalid') {
      client.refuse(messageId, `invalid request-uri: ${sketch.startLine}`);
      return;
    }
    const request: NewRequest = { client, messageId, line, sketch };
    switch (target.kind) {
      case 'noTransport':
        client.refuse(messageId, 'requested protocol/transport not available');
        return;
      case 'peer':
        this.#reach(request, target.peer);
        return;
      case 'name':
        // Don't reply until the look-up is done, because once the application knows a transaction
        // id, it must be able to cancel that transaction.
        this.#context.resolver.resolve(target, (peer) => {
          // The application disconnected during the look-up, so don't place its call.
          if (!client.alive) return;
          if (peer === undefined) this.#failUnsent(request, nowhere, 'DNS Error');
          else this.#reach(request, peer);
        });
        return;
    }
  }

  /**
   * Over TLS, waits for the connection before it builds the request, because the Contact contains
   * this end's port of the connection.
   */
  #reach(request: NewRequest, target: TargetPeer): void {
    const peer = this.#requests.peerOf(target);
    if (peer.protocol !== 'tls') {
      this.#sendTo(request, peer);
      return;
    }
    this.#context.whenConnected(peer, (result) => {
      // The application disconnected during the handshake, so don't place its call.
      if (!request.client.alive) return;
      if (result.ok) this.#sendTo(request, peer);
      else this.#failUnsent(request, peer, result.reason);
    });
  }

  #sendTo(request: NewRequest, peer: SipPeer): void {
    const { client, messageId, line, sketch } = request;
    if (isSelf(this.#context.local, peer.address, peer.port)) {
      client.refuse(messageId, 'can not send request to myself');
      return;
    }
    const built = this.#build(line, sketch, peer);
    if (built.kind === 'refused') {
      client.refuse(messageId, built.reason);
      return;
    }
    const outgoing = this.#outgoing(request, built, peer);
    const sent = this.#context.stack.sendRequest(
      built.request,
      peer,
      this.#responses.userFor(outgoing),
    );
    if (sent === undefined) {
      client.refuse(messageId, 'Error creating sip transaction for uac request');
      return;
    }
    outgoing.sent = sent;
    this.#responses.add(outgoing);
    if (line.method === 'INVITE') this.#context.reports.attempt('application', sent.text);
    const { transactionId } = outgoing;
    this.#requests.confirm(client, messageId, peer, { transactionId, text: sent.text });
  }

  #build(line: RequestLine, sketch: SipText, peer: SipPeer): BuiltRequest {
    const { identifiers, clock, localFor } = this.#context;
    return buildRequest(line, sketch, {
      local: localFor(peer),
      protocol: peer.protocol,
      branch: identifiers.branch(),
      newTag: identifiers.tag,
      newCallId: identifiers.uuid,
      firstCseq: firstCseq(clock.now()),
    });
  }

  #outgoing(
    { client, line }: NewRequest,
    built: Extract<BuiltRequest, { kind: 'request' }>,
    peer: SipPeer,
  ): Outgoing {
    return newOutgoing({
      transactionId: this.#context.identifiers.uuid(),
      dialogId: wantsContact(line.method) ? dialogIdOf(built.callId, built.fromTag) : '',
      client,
      request: built.request,
      peer,
      callId: built.callId,
      fromTag: built.fromTag,
      cseq: built.cseq,
      contact: built.contact,
      dialog: undefined,
    });
  }

  /**
   * Fails a request whose destination can't be resolved or connected to. Replies like
   * drachtio-server, i.e. first with the request (without Via) and then with a generated 503.
   */
  #failUnsent(request: NewRequest, peer: SipPeer, reason: string): void {
    const { client, messageId, line, sketch } = request;
    const built = this.#build(line, sketch, peer);
    if (built.kind === 'refused') {
      client.refuse(messageId, built.reason);
      return;
    }
    const outgoing = this.#outgoing(request, built, peer);
    const headers = built.request.headers.filter((header) => header.name !== 'Via');
    const unsent = withHeader(
      { ...built.request, headers },
      'To',
      unbracketedTo(headerValue(built.request, 'To') ?? ''),
    );
    const timeMs = this.#context.clock.now();
    const meta = { bytes: 0, protocol: 'unknown', address: '', port: 0, timeMs };
    client.requestSent(messageId, {
      meta: { source: 'application', ...meta },
      transactionId: outgoing.transactionId,
      text: serializeMessage(unsent),
    });
    this.#responses.fail(outgoing, { status: 503, reason }, 'unknown');
  }
}

/** Instead of naming a dialog's id, an application may identify the dialog by its headers. */
function knownDialogId(sketch: SipText): string | undefined {
  const callId = headerValue(sketch, 'Call-ID');
  const tag = addressTag(headerValue(sketch, 'From') ?? '');
  return callId === undefined || tag === undefined ? undefined : dialogIdOf(callId, tag);
}

function newTarget(line: RequestLine, route: string): Target | undefined {
  const uri = parseSipUri(line.uri);
  if (uri === undefined) return undefined;
  if (route !== '') return targetOfRoute(route);
  // This would require TLS on every hop to the callee (RFC 5630 section 3.1.3), which we can't
  // promise in our Contact.
  return uri.scheme === 'sips' ? { kind: 'noTransport' } : targetOf(line.uri);
}
