// Dialogs (RFC 3261 section 12): the state that the engine keeps between two requests of a call.
// Commands of the application find a dialog by drachtio's id (`<Call-ID>;from-tag=<tag>`). Messages
// from the network find it by its tags.

import type { ControlClient } from '../control/control-client.ts';
import { headerValue, type SipRequest } from '../message/sip-message.ts';
import type { TimerHandle } from '../transaction/engine-timing.ts';
import type { SipPeer } from '../transport/sip-peer.ts';

/** Maximum number of simultaneous dialogs. */
export const maxDialogs = 50_000;

export type SessionTimerState = {
  readonly intervalMs: number;
  /** Whether the engine must refresh the session, and not the peer. */
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
  /** From header of the engine's requests, as written when the dialog began. */
  readonly localAddress: string;
  /** To header of the engine's requests, as written when the dialog began. */
  readonly remoteAddress: string;
  /**
   * The far end's address when the dialog began. A BYE goes there if the far end's Contact is not
   * usable.
   */
  readonly peer: SipPeer;
  /** Value of the engine's Contact header. */
  localContact: string;
  remoteTarget: string;
  /**
   * True until the far end sends a Contact. The target is then the INVITE's request URI, and
   * requests go to the INVITE's destination.
   */
  isTargetAssumed: boolean;
  readonly routeSet: readonly string[];
  localCseq: number;
  remoteCseq: number | undefined;
  /** The application that receives the peer's requests. Undefined once it is gone. */
  owner: ControlClient | undefined;
  /**
   * `early` until a 2xx. `cancelled` if the application cancelled, but the 2xx was faster. The call
   * is then up, and a BYE follows the ACK.
   */
  state: 'early' | 'confirmed' | 'cancelled';
  /** The engine's answered INVITE that waits for the application's ACK. */
  unacknowledged: { readonly cseq: number; readonly transactionId: string } | undefined;
  /** The last ACK. It is sent again for each retransmitted 2xx. */
  ack: { readonly cseq: number; readonly peer: SipPeer; readonly text: string } | undefined;
  /** The engine's 2xx to the peer's INVITE, while it waits for the peer's ACK. */
  awaitingAck:
    | { readonly cseq: number; readonly transactionId: string; readonly acknowledge: () => boolean }
    | undefined;
  /** The last SDP sent to the peer. A session refresh repeats it. */
  localSdp: string | undefined;
  session: SessionTimerState | undefined;
  ownerlessTimer: TimerHandle | undefined;
};

/** Members with the same initial value in every dialog. */
type DialogProgress = 'isTargetAssumed' | 'state' | 'unacknowledged' | 'ack' | 'awaitingAck';
/** The members that must be given when a dialog begins. */
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

/** Call this when a 2xx is received or sent, for the first INVITE or a later one. */
export function confirmDialog(dialog: Dialog): void {
  if (dialog.state === 'early') dialog.state = 'confirmed';
}

export function dialogIdOf(callId: string, fromTag: string): string {
  return `${callId};from-tag=${fromTag}`;
}

/**
 * Returns true for a NOTIFY that ends its subscription. Without such a NOTIFY, a subscription lives
 * as long as its application.
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

  /**
   * Returns the dialogs of an application that has disconnected, and leaves them without an owner.
   */
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
