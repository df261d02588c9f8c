// Dialogs (RFC 3261 section 12): the state that the engine keeps between a call's requests. The
// application's commands name a dialog by drachtio's id (`<Call-ID>;from-tag=<tag>`). For messages
// from the network, we look it up by its tags.

import type { ControlClient } from '../control/control-client.ts';
import { headerValue, type SipRequest } from '../message/sip-message.ts';
import type { TimerHandle } from '../transaction/engine-timing.ts';
import type { SipPeer } from '../transport/sip-peer.ts';

/** Maximum number of simultaneous dialogs. */
export const maxDialogs = 50_000;

export type SessionTimerState = {
  readonly intervalMs: number;
  /** Whether it's the engine, rather than the peer, that must refresh the session. */
  readonly isRefresher: boolean;
  timer: TimerHandle | undefined;
};

export type Dialog = {
  readonly id: string;
  readonly role: 'uac' | 'uas';
  readonly usage: 'call' | 'subscription';
  readonly callId: string;
  readonly localTag: string;
  readonly remoteTag: string;
  /** From header for the engine's requests, as it was when the dialog began. */
  readonly localAddress: string;
  /** To header for the engine's requests, as it was when the dialog began. */
  readonly remoteAddress: string;
  /**
   * The far end's address when the dialog began. We send the BYE there if the far end's Contact
   * isn't usable.
   */
  readonly peer: SipPeer;
  /** Value of the engine's Contact header. */
  localContact: string;
  remoteTarget: string;
  /**
   * True until the far end sends a Contact. Until then, the target is the INVITE's request URI, and
   * requests go to the INVITE's destination.
   */
  isTargetAssumed: boolean;
  readonly routeSet: readonly string[];
  localCseq: number;
  remoteCseq: number | undefined;
  /** The application that receives the peer's requests. Undefined once it has disconnected. */
  owner: ControlClient | undefined;
  /**
   * `early` until a 2xx. `cancelled` if the application cancelled but the 2xx was faster. The call
   * is then up, and a BYE follows the ACK.
   */
  state: 'early' | 'confirmed' | 'cancelled';
  /** The engine's INVITE that has been answered but not yet acknowledged by the application. */
  unacknowledged: { readonly cseq: number; readonly transactionId: string } | undefined;
  /** The last ACK, which we send again for each retransmitted 2xx. */
  ack: { readonly cseq: number; readonly peer: SipPeer; readonly text: string } | undefined;
  /** The engine's 2xx to the peer's INVITE, while it waits for the peer's ACK. */
  awaitingAck:
    | { readonly cseq: number; readonly transactionId: string; readonly acknowledge: () => boolean }
    | undefined;
  /** The last SDP that we sent to the peer. A session refresh repeats it. */
  localSdp: string | undefined;
  session: SessionTimerState | undefined;
  ownerlessTimer: TimerHandle | undefined;
};

/** Fields that start with the same value in every dialog. */
type DialogProgress = 'isTargetAssumed' | 'state' | 'unacknowledged' | 'ack' | 'awaitingAck';
/** Fields that must be set when a dialog begins. */
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

/** Call this whenever a 2xx is sent or received, for the initial INVITE or a later one. */
export function confirmDialog(dialog: Dialog): void {
  if (dialog.state === 'early') dialog.state = 'confirmed';
}

export function dialogIdOf(callId: string, fromTag: string): string {
  return `${callId};from-tag=${fromTag}`;
}

/**
 * Returns true for a NOTIFY that ends its subscription. Otherwise a subscription lives as long as
 * its application.
 */
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

  /** Returns false if there are too many dialogs. */
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

  /** Compares tags, because two callers with the same Call-ID and From tag share an id. */
  has(dialog: Dialog): boolean {
    return this.byTags(dialog.callId, dialog.localTag, dialog.remoteTag) === dialog;
  }

  byId(id: string): Dialog | undefined {
    return this.#byId.get(id);
  }

  byTags(callId: string, localTag: string, remoteTag: string): Dialog | undefined {
    return this.#byTags.get(tagsKey(callId, localTag, remoteTag));
  }

  /** Returns the dialogs of an application that has disconnected. They no longer have an owner. */
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
