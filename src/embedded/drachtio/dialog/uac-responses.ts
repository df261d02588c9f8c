// Handles the responses to an application's requests by passing them on, and by creating and ending
// dialogs. We also hang up a fork's other branches, and any call that's answered after its
// application has disconnected. If the far end doesn't respond at all, we generate a response.

import type { ControlClient } from '../control/control-client.ts';
import type { MessageMeta } from '../control/control-messages.ts';
import type { EngineContext } from '../engine-context.ts';
import { unbracketedTo } from '../message/request-builder.ts';
import { addressTag } from '../message/sip-grammar.ts';
import { headerValue, type SipResponse, serializeMessage } from '../message/sip-message.ts';
import { buildResponse } from '../message/sip-replies.ts';
import type { RequestUser, StackFailure } from '../sip-stack.ts';
import type { SipPeer } from '../transport/sip-peer.ts';
import { confirmDialog, type Dialog, endsSubscription } from './dialog.ts';
import { assumeTarget, dialogOf, takeTarget } from './dialog-making.ts';
import { type DialogRequests, emptySketch, type HangUp, silentUser } from './dialog-requests.ts';
import type { Outgoing } from './outgoing.ts';
import { noteAllowedMethods, parseMinSe } from './session-headers.ts';
import { armSessionTimer } from './session-timer.ts';

/**
 * Maximum number of a fork's other branches that we acknowledge and hang up, because each of them
 * uses a dialog's memory for 32 s.
 */
const maxForkBranches = 16;

export const applicationGone: HangUp = { text: 'Application gone', notifyOwner: false };

export class UacResponses {
  readonly #context: EngineContext;
  readonly #requests: DialogRequests;
  readonly #byTransaction = new Map<string, Outgoing>();
  /** INVITEs that don't have a confirmed dialog yet, by Call-ID and local tag. */
  readonly #early = new Map<string, Outgoing>();
  onRingTimeout: (outgoing: Outgoing) => void = () => undefined;
  onProvisional: (outgoing: Outgoing) => void = () => undefined;

  constructor(context: EngineContext, requests: DialogRequests) {
    this.#context = context;
    this.#requests = requests;
  }

  add(outgoing: Outgoing): void {
    this.#byTransaction.set(outgoing.transactionId, outgoing);
    if (outgoing.initial && outgoing.request.method === 'INVITE') {
      this.#early.set(earlyKey(outgoing.callId, outgoing.fromTag), outgoing);
    }
  }

  byTransaction(transactionId: string): Outgoing | undefined {
    return this.#byTransaction.get(transactionId);
  }

  /** Returns the pending INVITE to which a request with this To tag belongs. */
  earlyCall(callId: string, localTag: string): Outgoing | undefined {
    return this.#early.get(earlyKey(callId, localTag));
  }

  /** Returns the client's initial INVITEs that haven't received a final response yet. */
  pendingCallsOf(client: ControlClient): readonly Outgoing[] {
    return [...this.#early.values()].filter((outgoing) => outgoing.client === client);
  }

  userFor(outgoing: Outgoing): RequestUser {
    return {
      onResponse: (response, peer, bytes) => this.#receive(outgoing, response, peer, bytes),
      onFailure: (failure) => {
        if (!outgoing.isLost) this.fail(outgoing, failure, outgoing.peer.protocol);
      },
      onConnectionLost: (failure) => this.#giveUp(outgoing, failure),
      onRingTimeout: () => this.onRingTimeout(outgoing),
      onTerminated: () => this.#remove(outgoing),
    };
  }

  /**
   * Passes a generated response to the application. The byte count of 0 and the empty address show
   * the application that it isn't a real response.
   */
  fail(outgoing: Outgoing, failure: StackFailure, protocol: string): void {
    const to = unbracketedTo(headerValue(outgoing.request, 'To') ?? '');
    const headers = outgoing.request.headers.map((header) =>
      header.name === 'To' ? { name: 'To', value: to } : header,
    );
    const request = { ...outgoing.request, headers };
    const response = buildResponse(request, failure.status, failure.reason, {
      toTag: this.#context.identifiers.tag(),
    });
    this.#endCall(outgoing);
    withdrawOffer(outgoing);
    const meta = { source: 'network', bytes: 0, protocol, address: '', port: 0 } as const;
    this.#notify(
      outgoing,
      { ...meta, timeMs: this.#context.clock.now() },
      serializeMessage(response),
    );
    if (outgoing.request.method === 'BYE' && outgoing.dialog !== undefined) {
      this.#requests.forget(outgoing.dialog);
    }
  }

  /**
   * Cancels a pending call whose answer couldn't reach us any more. Otherwise the phone would
   * continue to ring, and whoever picks up would hear nothing.
   */
  #giveUp(outgoing: Outgoing, failure: StackFailure): void {
    const isPending = outgoing.sent?.transaction.state === 'proceeding';
    if (!isPending || !outgoing.initial || outgoing.isLost) return;
    outgoing.isLost = true;
    this.onRingTimeout(outgoing);
    this.fail(outgoing, failure, outgoing.peer.protocol);
  }

  /**
   * Ends a call whose 2xx doesn't contain a usable Contact. We send ACK and BYE to where we sent
   * the INVITE, with its request URI.
   *
   * @param notifyOwner true unless the application itself is hanging up
   */
  hangUpUnreachable(dialog: Dialog, notifyOwner: boolean): void {
    const pending = dialog.unacknowledged?.transactionId ?? '';
    const uri = this.#byTransaction.get(pending)?.request.uri ?? dialog.remoteTarget;
    assumeTarget(dialog, uri);
    this.#requests.hangUp(dialog, { text: 'No usable Contact in the answer', notifyOwner });
  }

  /**
   * Hangs up a call that has been answered but that no application is going to acknowledge. Returns
   * false if no ACK is outstanding.
   */
  hangUpUnacknowledged(dialog: Dialog, how: HangUp): boolean {
    const pending = dialog.unacknowledged;
    if (pending === undefined) return false;
    const outgoing = this.#byTransaction.get(pending.transactionId);
    if (dialog.remoteTarget === '' && outgoing !== undefined) {
      assumeTarget(dialog, outgoing.request.uri);
    }
    this.#requests.hangUp(dialog, how);
    return true;
  }

  get size(): number {
    return this.#byTransaction.size;
  }

  #receive(outgoing: Outgoing, response: SipResponse, peer: SipPeer, bytes: number): void {
    if (response.status < 200) {
      this.#receiveProvisional(outgoing, response, peer, bytes);
      return;
    }
    if (response.status >= 300) withdrawOffer(outgoing);
    if (outgoing.request.method !== 'INVITE') {
      this.#receiveNonInvite(outgoing, response, peer, bytes);
      return;
    }
    if (response.status < 300) {
      this.#receiveAnswer(outgoing, response, peer, bytes);
      return;
    }
    this.#endCall(outgoing);
    if (outgoing.initial && outgoing.cancel.state === 'none') {
      this.#context.reports.stop('network', 'call-rejected', serializeMessage(response));
    }
    this.#pass(outgoing, response, peer, bytes);
  }

  #receiveProvisional(
    outgoing: Outgoing,
    response: SipResponse,
    peer: SipPeer,
    bytes: number,
  ): void {
    this.onProvisional(outgoing);
    if (response.status === 100) return;
    const rseq = headerValue(response, 'RSeq');
    if (rseq !== undefined && outgoing.initial) {
      // This response is a retransmission, and the application's PRACK is already on its way (RFC
      // 3262 section 4).
      const key = `${addressTag(headerValue(response, 'To') ?? '') ?? ''} ${rseq}`;
      if (outgoing.lastRseq === key) return;
      outgoing.lastRseq = key;
      const dialog = this.#makeDialog(outgoing, response);
      // RFC 3262 section 4 requires a Contact here. Even if the far end has omitted it, we have to
      // send the PRACK somewhere, because the call can't be answered without a PRACK.
      if (dialog?.remoteTarget === '') assumeTarget(dialog, outgoing.request.uri);
    }
    this.#pass(outgoing, response, peer, bytes);
  }

  #receiveNonInvite(outgoing: Outgoing, response: SipResponse, peer: SipPeer, bytes: number): void {
    const { dialog } = outgoing;
    if (outgoing.request.method === 'BYE' && dialog !== undefined) {
      this.#requests.afterBye(dialog, response.status);
    }
    const answered = response.status < 300;
    if (outgoing.request.method === 'SUBSCRIBE' && outgoing.initial && answered) {
      const made = this.#makeDialog(outgoing, response);
      if (made !== undefined) made.state = 'confirmed';
    }
    if (dialog?.usage === 'subscription' && endsSubscription(outgoing.request)) {
      this.#requests.forget(dialog);
    }
    if (outgoing.request.method === 'UPDATE' && dialog !== undefined && answered) {
      takeTarget(dialog, response);
      noteAllowedMethods(dialog, response);
      armSessionTimer(this.#context, this.#requests, dialog, response, 'uac');
    }
    this.#pass(outgoing, response, peer, bytes);
  }

  #receiveAnswer(outgoing: Outgoing, response: SipResponse, peer: SipPeer, bytes: number): void {
    const tag = addressTag(headerValue(response, 'To') ?? '') ?? '';
    const known = outgoing.dialog;
    const isUp = known !== undefined && known.state !== 'early';
    // Only initial INVITEs can fork. If the tag of a response changes within a dialog, that's a bug
    // at the far end, but the call is up all the same.
    if (outgoing.initial && isUp && known.remoteTag !== tag) {
      this.#hangUpFork(outgoing, response, tag);
      return;
    }
    if (isUp && isRepeated(known, outgoing)) {
      this.#requests.repeatAck(known, outgoing.cseq);
      return;
    }
    const dialog = outgoing.initial ? this.#makeDialog(outgoing, response) : known;
    if (dialog === undefined) {
      this.#hangUpFork(outgoing, response, tag);
      return;
    }
    confirmDialog(dialog);
    dialog.unacknowledged = { cseq: outgoing.cseq, transactionId: outgoing.transactionId };
    if (outgoing.cancel.state !== 'none') dialog.state = 'cancelled';
    takeTarget(dialog, response);
    noteAllowedMethods(dialog, response);
    armSessionTimer(this.#context, this.#requests, dialog, response, 'uac');
    this.#forgetEarly(outgoing);
    if (!hasApplication(outgoing)) {
      this.hangUpUnacknowledged(dialog, applicationGone);
      return;
    }
    this.#pass(outgoing, response, peer, bytes);
    if (outgoing.initial) {
      this.#context.reports.start('network', 'uac', serializeMessage(response));
    }
  }

  /**
   * If the remote tag is new, replaces the early dialog. Returns undefined if there are too many
   * dialogs.
   */
  #makeDialog(outgoing: Outgoing, response: SipResponse): Dialog | undefined {
    const remoteTag = addressTag(headerValue(response, 'To') ?? '') ?? '';
    const known = outgoing.dialog;
    if (known !== undefined && known.remoteTag === remoteTag) return known;
    if (known !== undefined) this.#requests.forget(known);
    const dialog = dialogOf(outgoing, response, remoteTag);
    dialog.owner = outgoing.client.alive ? outgoing.client : undefined;
    dialog.minSessionSeconds = parseMinSe(outgoing.request) ?? 0;
    if (outgoing.request.body !== '') dialog.localSdp = outgoing.request.body;
    if (!this.#context.dialogs.add(dialog)) return undefined;
    outgoing.dialog = dialog;
    return dialog;
  }

  /**
   * Acknowledges a fork branch that has answered too late, and hangs it up (RFC 3261 section
   * 13.2.2.4).
   */
  #hangUpFork(outgoing: Outgoing, response: SipResponse, tag: string): void {
    const acks = outgoing.forkAcks ?? new Map<string, string>();
    outgoing.forkAcks = acks;
    const repeated = acks.get(tag);
    if (repeated !== undefined) {
      this.#context.stack.sendDirectly(outgoing.peer, repeated);
      return;
    }
    if (acks.size >= maxForkBranches) return;
    const branch = dialogOf(outgoing, response, tag);
    if (branch.remoteTarget === '') assumeTarget(branch, outgoing.request.uri);
    this.#requests.withPeer(branch, (found) => {
      const peer = found ?? outgoing.peer;
      const ack = this.#requests.sendAck(branch, peer, outgoing.cseq, emptySketch('ACK'));
      acks.set(tag, ack);
      const reason = { name: 'Reason', value: 'SIP;cause=200;text="Another branch answered"' };
      const bye = { ...emptySketch('BYE'), headers: [reason] };
      this.#requests.send(branch, peer, bye, silentUser);
    });
  }

  /** Removes the state of a call that wasn't answered. */
  #endCall(outgoing: Outgoing): void {
    this.#forgetEarly(outgoing);
    if (outgoing.initial && outgoing.dialog?.state === 'early') {
      this.#requests.forget(outgoing.dialog);
    }
  }

  #forgetEarly(outgoing: Outgoing): void {
    if (!outgoing.initial) return;
    const key = earlyKey(outgoing.callId, outgoing.fromTag);
    if (this.#early.get(key) === outgoing) this.#early.delete(key);
  }

  /**
   * Called when the transaction has ended. A callee that hasn't received an ACK by now has given up
   * (RFC 3261 section 13.3.1.4), so we hang up too.
   */
  #remove(outgoing: Outgoing): void {
    const { dialog } = outgoing;
    const waiting = dialog?.unacknowledged?.transactionId === outgoing.transactionId;
    if (dialog !== undefined && waiting && this.#context.dialogs.has(dialog)) {
      this.hangUpUnacknowledged(dialog, { text: 'ACK timeout', notifyOwner: true });
    }
    this.#byTransaction.delete(outgoing.transactionId);
    this.#forgetEarly(outgoing);
  }

  #pass(outgoing: Outgoing, response: SipResponse, peer: SipPeer, bytes: number): void {
    if (outgoing.isLost) return;
    const meta: MessageMeta = {
      source: 'network',
      bytes,
      protocol: peer.protocol,
      address: peer.address,
      port: peer.port,
      timeMs: this.#context.clock.now(),
    };
    this.#notify(outgoing, meta, serializeMessage(response));
  }

  #notify(outgoing: Outgoing, meta: MessageMeta, text: string): void {
    const client: ControlClient = outgoing.client;
    client.notify({
      meta,
      transactionId: outgoing.transactionId,
      dialogId: outgoing.dialogId,
      text,
    });
  }
}

/** A refused offer doesn't change the session, so a refresh must repeat the SDP before it. */
function withdrawOffer({ dialog, initial, request, replacedSdp }: Outgoing): void {
  if (dialog === undefined || initial || request.body === '') return;
  if (dialog.localSdp === request.body) dialog.localSdp = replacedSdp;
}

/** Whether an application still waits for the final response. */
function hasApplication({ client, isLost }: Outgoing): boolean {
  return client.alive && !isLost;
}

function isRepeated(dialog: Dialog, outgoing: Outgoing): boolean {
  return dialog.unacknowledged?.cseq === outgoing.cseq || (dialog.ack?.cseq ?? 0) >= outgoing.cseq;
}

function earlyKey(callId: string, tag: string): string {
  return `${callId}\n${tag}`;
}
