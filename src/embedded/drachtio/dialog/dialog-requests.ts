// Requests inside a dialog. This includes how they're addressed (RFC 3261 section 12.2), the ACK
// for a 2xx, and the BYE that the engine sends on its own initiative.

import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { ControlClient } from '../control/control-client.ts';
import type { MessageMeta } from '../control/control-messages.ts';
import type { EngineContext } from '../engine-context.ts';
import { viaValue } from '../message/local-identity.ts';
import { requestPath } from '../message/request-path.ts';
import { formatHostPort } from '../message/sip-grammar.ts';
import {
  type SipHeader,
  type SipRequest,
  serializeMessage,
  sortedHeaders,
} from '../message/sip-message.ts';
import type { RequestUser, SentRequest } from '../sip-stack.ts';
import { transactionLifeMs } from '../transaction/engine-timing.ts';
import type { SipPeer } from '../transport/sip-peer.ts';
import { type TargetPeer, targetOf } from '../transport/sip-target.ts';
import { contentTypeOf } from './app-headers.ts';
import type { Dialog } from './dialog.ts';

export type DialogSketch = {
  readonly method: string;
  /** The application's headers, except for those that follow from the dialog. */
  readonly headers: readonly SipHeader[];
  readonly contact?: string | undefined;
  readonly contentType?: string | undefined;
  readonly maxForwards?: string | undefined;
  readonly body: string;
};

const refreshesTarget: ReadonlySet<string> = new Set(['INVITE', 'UPDATE', 'SUBSCRIBE', 'REFER']);

export const silentUser: RequestUser = {
  onResponse: () => undefined,
  onFailure: () => undefined,
};

export type HangUp = {
  /** Text of the Reason header, from which drachtio-srf learns why the call ended. */
  readonly text: string;
  /** True if the dialog's owner should be notified of the BYE. */
  readonly notifyOwner: boolean;
};

export class DialogRequests {
  readonly #context: EngineContext;

  constructor(context: EngineContext) {
    this.#context = context;
  }

  /**
   * Finds the address for the next request. Passes undefined if the dialog doesn't have a usable
   * target, or if we can't resolve the target's host name.
   */
  withPeer(dialog: Dialog, done: (peer: SipPeer | undefined) => void): void {
    const [firstHop] = dialog.routeSet;
    if (firstHop === undefined && dialog.isTargetAssumed) {
      done(dialog.peer);
      return;
    }
    const target = targetOf(firstHop ?? dialog.remoteTarget);
    if (target.kind === 'peer') {
      const isNatted = isUnreachable(dialog, target.peer);
      done(isNatted ? dialog.peer : this.#dialogPeer(dialog, target.peer));
      return;
    }
    if (target.kind === 'name') {
      this.#context.resolver.resolve(target, (peer) =>
        done(peer === undefined ? undefined : this.#dialogPeer(dialog, peer)),
      );
      return;
    }
    done(undefined);
  }

  /** Completes the identity that a peer must prove over TLS, per its trunk's current settings. */
  peerOf({ tls, ...place }: TargetPeer): SipPeer {
    if (tls === undefined) return place;
    return { ...place, tls: this.#context.tls.identify(tls.trunk, tls.name) };
  }

  /**
   * A dialog that began over TLS stays on TLS, and on its connection if the target has the same
   * address. This also covers a Contact or Record-Route that lacks `transport=tls`. For a different
   * TLS host, the trunk's settings apply. If that host is a bare address, its certificate must
   * contain the same name as the first one, because certificates rarely contain addresses.
   */
  #dialogPeer({ peer }: Dialog, target: TargetPeer): SipPeer {
    const { local, keepsAlive } = peer;
    if (peer.tls === undefined) {
      return this.peerOf({
        ...target,
        ...(local !== undefined && { local }),
        ...(keepsAlive !== undefined && { keepsAlive }),
      });
    }
    const isSamePlace = target.address === peer.address && target.port === peer.port;
    if (target.tls === undefined || isSamePlace) return peer;
    const name = isIP(target.tls.name) === 0 ? target.tls.name : peer.tls.name;
    return this.peerOf({ ...target, tls: { trunk: peer.tls.trunk, name } });
  }

  build(dialog: Dialog, peer: SipPeer, cseq: number, sketch: DialogSketch): SipRequest {
    const { localFor, identifiers } = this.#context;
    // The far end may never have sent a usable Contact. Its address is all that we know then.
    const target = dialog.remoteTarget || `sip:${formatHostPort(peer.address, peer.port)}`;
    const { uri, routes } = requestPath(target, dialog.routeSet);
    const headers: SipHeader[] = [
      { name: 'Via', value: viaValue(localFor(peer), peer.protocol, identifiers.branch()) },
      ...routes.map((value) => ({ name: 'Route', value })),
      { name: 'Max-Forwards', value: sketch.maxForwards ?? '70' },
      { name: 'From', value: dialog.localAddress },
      { name: 'To', value: dialog.remoteAddress },
      { name: 'Call-ID', value: dialog.callId },
      { name: 'CSeq', value: `${cseq} ${sketch.method}` },
      ...sketch.headers,
      { name: 'Content-Length', value: String(sketch.body.length) },
    ];
    const contact =
      sketch.contact ?? (refreshesTarget.has(sketch.method) ? dialog.localContact : undefined);
    if (contact !== undefined) headers.push({ name: 'Contact', value: contact });
    const contentType = contentTypeOf(sketch.contentType, sketch.body);
    if (contentType !== undefined) headers.push({ name: 'Content-Type', value: contentType });
    return {
      kind: 'request',
      method: sketch.method,
      uri,
      headers: sortedHeaders(headers),
      body: sketch.body,
    };
  }

  send(
    dialog: Dialog,
    peer: SipPeer,
    sketch: DialogSketch,
    user: RequestUser,
  ): SentRequest | undefined {
    dialog.localCseq += 1;
    return this.#context.stack.sendRequest(
      this.build(dialog, peer, dialog.localCseq, sketch),
      peer,
      user,
    );
  }

  /**
   * Sends the ACK and stores it, because we send the same ACK for every retransmission of the 2xx.
   */
  sendAck(dialog: Dialog, peer: SipPeer, cseq: number, sketch: DialogSketch): string {
    const text = serializeMessage(this.build(dialog, peer, cseq, sketch));
    dialog.ack = { cseq, peer, text };
    dialog.unacknowledged = undefined;
    this.#context.stack.sendDirectly(peer, text);
    return text;
  }

  repeatAck(dialog: Dialog, cseq: number): void {
    if (dialog.ack?.cseq === cseq) {
      this.#context.stack.sendDirectly(dialog.ack.peer, dialog.ack.text);
    }
  }

  /**
   * Ends a dialog on the engine's own initiative. If a 2xx hasn't been acknowledged yet, we send
   * the ACK before the BYE.
   */
  hangUp(dialog: Dialog, how: HangUp): void {
    const owner = dialog.owner;
    this.forget(dialog);
    // There's no BYE for a subscription, which just expires.
    if (dialog.usage === 'subscription') return;
    this.withPeer(dialog, (found) => {
      const peer = found ?? dialog.peer;
      const pending = dialog.unacknowledged;
      if (pending !== undefined) this.sendAck(dialog, peer, pending.cseq, emptySketch('ACK'));
      const reason = { name: 'Reason', value: `SIP;cause=200;text="${how.text}"` };
      const sent = this.send(
        dialog,
        peer,
        { ...emptySketch('BYE'), headers: [reason] },
        silentUser,
      );
      if (sent === undefined) return;
      this.#context.reports.stop('application', stopReason(how.text), sent.text);
      if (!how.notifyOwner) return;
      owner?.notify({
        meta: this.sentMeta(peer, sent.text.length),
        transactionId: 'unsolicited',
        dialogId: dialog.id,
        text: sent.text,
      });
    });
  }

  /**
   * Forgets a dialog whose BYE got its final response. If that's a challenge, the application may
   * repeat the BYE with credentials, so the dialog stays. An application that gives up sends
   * nothing more, so the dialog stays no longer than a transaction would.
   */
  afterBye(dialog: Dialog, status: number): void {
    if (status !== 401 && status !== 407) {
      this.forget(dialog);
      return;
    }
    const { clock, timers } = this.#context;
    clock.clearTimer(dialog.session?.timer);
    dialog.session = undefined;
    dialog.byeTimer ??= clock.setTimer(() => this.forget(dialog), transactionLifeMs(timers));
  }

  forget(dialog: Dialog): void {
    const { clock, dialogs } = this.#context;
    clock.clearTimer(dialog.session?.timer);
    clock.clearTimer(dialog.ownerlessTimer);
    clock.clearTimer(dialog.byeTimer);
    dialog.session = undefined;
    // The call has ended, so its 2xx doesn't have to be retransmitted any more.
    dialog.awaitingAck?.acknowledge();
    dialog.awaitingAck = undefined;
    dialogs.remove(dialog);
  }

  /** Replies to the application's command with the message that we've sent. */
  confirm(
    client: ControlClient,
    messageId: string,
    peer: SipPeer,
    { transactionId, text }: { readonly transactionId: string; readonly text: string },
  ): void {
    client.requestSent(messageId, { meta: this.sentMeta(peer, text.length), transactionId, text });
  }

  /**
   * Like drachtio-server, we report the engine's own address over UDP, but the peer's address over
   * TCP.
   */
  sentMeta(peer: SipPeer, bytes: number): MessageMeta {
    const { local, clock } = this.#context;
    const address =
      peer.protocol === 'udp'
        ? { address: local.host, port: local.port }
        : { address: peer.address, port: peer.port };
    return {
      source: 'application',
      bytes,
      protocol: peer.protocol,
      ...address,
      timeMs: clock.now(),
    };
  }
}

const nobodysRanges: ReadonlySet<string> = new Set(['unspecified', 'broadcast', 'multicast']);
const privateRanges: ReadonlySet<string> = new Set([
  'private',
  'carrierGradeNat',
  'linkLocal',
  'uniqueLocal',
]);

/**
 * Whether we have to send to the address that the far end's packets come from.
 * - A phone behind NAT puts its private address into Contact.
 * - A far end with both kinds of IP may name an address of the kind that our sockets don't have.
 * - No far end is at 0.0.0.0 or a group address, and only a far end on this machine is at loopback.
 */
function isUnreachable(dialog: Dialog, target: TargetPeer): boolean {
  const { peer, routeSet } = dialog;
  if (target.address === peer.address || !ipaddr.isValid(target.address)) return false;
  if (isIP(target.address) !== isIP(peer.address)) return true;
  const range = rangeOf(target);
  if (nobodysRanges.has(range)) return true;
  if (range === 'loopback') return rangeOf(peer) !== 'loopback';
  return routeSet.length === 0 && privateRanges.has(range);
}

function rangeOf({ address }: Pick<SipPeer, 'address'>): string {
  return ipaddr.isValid(address) ? ipaddr.process(address).range() : 'unknown';
}

export function emptySketch(method: string): DialogSketch {
  return { method, headers: [], body: '' };
}

function stopReason(text: string) {
  if (text === 'Session timer expired') return 'session-expired';
  return text.startsWith('ACK-BYE') ? 'ackbye' : 'normal-release';
}
