// A request that an application sent, from its first byte to the end of its transaction.

import type { ControlClient } from '../control/control-client.ts';
import type { SipRequest } from '../message/sip-message.ts';
import type { ReceivedRequest, SentRequest } from '../sip-stack.ts';
import type { SipPeer } from '../transport/sip-peer.ts';
import type { Dialog } from './dialog.ts';

export type Outgoing = {
  readonly transactionId: string;
  /** '' outside dialogs. */
  readonly dialogId: string;
  /** Replaced when the application is gone and another connection takes over. */
  client: ControlClient;
  request: SipRequest;
  readonly peer: SipPeer;
  sent: SentRequest | undefined;
  readonly callId: string;
  readonly fromTag: string;
  readonly cseq: number;
  readonly contact: string;
  /** The dialog that it was sent in, or that it made. */
  dialog: Dialog | undefined;
  /** True for what begins a dialog. */
  readonly initial: boolean;
  /** `waiting`: asked for before any provisional response (RFC 3261 section 9.1). */
  cancel:
    | { readonly state: 'none' }
    | { readonly state: 'waiting'; readonly text: SipRequest }
    | { readonly state: 'sent' };
  lastRseq: string | undefined;
  /** Other branches of a fork that answered too: the ACK for each, by To tag. */
  forkAcks: Map<string, string> | undefined;
  /** A request from the peer before the dialog is there; answered under this transaction's id. */
  earlyRequest: ReceivedRequest | undefined;
};

type OutgoingSeed = Omit<
  Outgoing,
  'initial' | 'sent' | 'cancel' | 'lastRseq' | 'forkAcks' | 'earlyRequest'
>;

export function newOutgoing(seed: OutgoingSeed): Outgoing {
  return {
    ...seed,
    initial: seed.dialog === undefined,
    sent: undefined,
    cancel: { state: 'none' },
    lastRseq: undefined,
    forkAcks: undefined,
    earlyRequest: undefined,
  };
}
