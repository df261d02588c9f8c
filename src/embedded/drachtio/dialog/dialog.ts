// Dialogs (RFC 3261 section 12): what has to be remembered between two requests of a call, and how a request in it is
// addressed. Found by drachtio's id (`<Call-ID>;from-tag=<tag>`) from the application's side, by tags from the network's.

import type { ControlClient } from '../control/control-client.ts';
import { headerValue, type SipRequest } from '../message/sip-message.ts';
import type { TimerHandle } from '../transaction/engine-timing.ts';
import type { SipPeer } from '../transport/sip-peer.ts';

/** Calls up at the same time. */
export const maxDialogs = 50_000;

export type SessionTimerState = {
  readonly intervalMs: number;
  readonly weRefresh: boolean;
  timer: TimerHandle | undefined;
};

export type Dialog = {
  readonly id: string;
  readonly role: 'uac' | 'uas';
  readonly usage: 'call' | 'subscription';
  readonly callId: string;
  readonly localTag: string;
  readonly remoteTag: string;
  /** From and To of our requests, as they were written when the dialog began. */
  readonly localAddress: string;
  readonly remoteAddress: string;
  /** The far end when the dialog began: where a BYE goes if its Contact leads nowhere. */
  readonly peer: SipPeer;
  /** Our Contact value. */
  localContact: string;
  remoteTarget: string;
  /** No Contact named it: it is the INVITE's request URI, and reached where the INVITE went. */
  isTargetAssumed: boolean;
  readonly routeSet: readonly string[];
  localCseq: number;
  remoteCseq: number | undefined;
  /** The application that gets what the peer sends; undefined once it is gone. */
  owner: ControlClient | undefined;
  /**
   * early: until a 2xx. cancelled: the application cancelled, but the 2xx was faster; the dialog is confirmed, and a BYE
   * follows the ACK.
   */
  state: 'early' | 'confirmed' | 'cancelled';
  /** The answered INVITE of ours that waits for the application's ACK. */
  unacknowledged: { readonly cseq: number; readonly transactionId: string } | undefined;
  /** The last ACK, repeated for each retransmitted 2xx. */
  ack: { readonly cseq: number; readonly peer: SipPeer; readonly text: string } | undefined;
  /** Our 2xx to an INVITE of the peer that waits for its ACK. */
  awaitingAck:
    | { readonly cseq: number; readonly transactionId: string; readonly acknowledge: () => boolean }
    | undefined;
  /** What we last told the peer about our media: a session refresh repeats it. */
  localSdp: string | undefined;
  session: SessionTimerState | undefined;
  ownerlessTimer: TimerHandle | undefined;
};

/** What a dialog gets as it goes on. */
type DialogProgress = 'isTargetAssumed' | 'state' | 'unacknowledged' | 'ack' | 'awaitingAck';
/** What is known when a dialog begins; the rest starts empty. */
export type DialogSeed = Omit<Dialog, DialogProgress | 'localSdp' | 'session' | 'ownerlessTimer'>;

export function newDialog(seed: DialogSeed): Dialog {
  return {
    ...seed,
    isTargetAssumed: false,
    state: 'early',
    unacknowledged: undefined,
    ack: undefined,
    awaitingAck: undefined,
    localSdp: undefined,
    session: undefined,
    ownerlessTimer: undefined,
  };
}

/** A 2xx came or went, of the first INVITE or of a later one. */
export function confirmDialog(dialog: Dialog): void {
  if (dialog.state === 'early') dialog.state = 'confirmed';
}

export function dialogIdOf(callId: string, fromTag: string): string {
  return `${callId};from-tag=${fromTag}`;
}

/** The NOTIFY that says so; without one a subscription lives as long as its application. */
export function endsSubscription(request: SipRequest): boolean {
  if (request.method !== 'NOTIFY') return false;
  return (headerValue(request, 'Subscription-State') ?? '').startsWith('terminated');
}

export class DialogTable {
  readonly #byId = new Map<string, Dialog>();
  readonly #byTags = new Map<string, Dialog>();
  readonly #byOwner = new Map<ControlClient, Set<Dialog>>();

  get size(): number {
    return this.#byTags.size;
  }

  /** False when there are too many. */
  add(dialog: Dialog): boolean {
    if (this.#byTags.size >= maxDialogs) return false;
    this.#byId.set(dialog.id, dialog);
    this.#byTags.set(tagsKey(dialog.callId, dialog.localTag, dialog.remoteTag), dialog);
    this.setOwner(dialog, dialog.owner);
    return true;
  }

  setOwner(dialog: Dialog, owner: ControlClient | undefined): void {
    if (dialog.owner !== undefined) this.#byOwner.get(dialog.owner)?.delete(dialog);
    dialog.owner = owner;
    if (owner === undefined) return;
    const owned = this.#byOwner.get(owner) ?? new Set();
    owned.add(dialog);
    this.#byOwner.set(owner, owned);
  }

  remove(dialog: Dialog): void {
    if (this.#byId.get(dialog.id) === dialog) this.#byId.delete(dialog.id);
    this.#byTags.delete(tagsKey(dialog.callId, dialog.localTag, dialog.remoteTag));
    this.setOwner(dialog, undefined);
  }

  /** By tags: two callers may use one Call-ID and From tag, and then share an id. */
  has(dialog: Dialog): boolean {
    return this.byTags(dialog.callId, dialog.localTag, dialog.remoteTag) === dialog;
  }

  byId(id: string): Dialog | undefined {
    return this.#byId.get(id);
  }

  byTags(callId: string, localTag: string, remoteTag: string): Dialog | undefined {
    return this.#byTags.get(tagsKey(callId, localTag, remoteTag));
  }

  /** Takes the dialogs away from an application that is gone. */
  releaseOwner(owner: ControlClient): Dialog[] {
    const owned = [...(this.#byOwner.get(owner) ?? [])];
    this.#byOwner.delete(owner);
    for (const dialog of owned) dialog.owner = undefined;
    return owned;
  }

  all(): IterableIterator<Dialog> {
    return this.#byTags.values();
  }
}

function tagsKey(callId: string, localTag: string, remoteTag: string): string {
  return `${callId}\n${localTag}\n${remoteTag}`;
}
