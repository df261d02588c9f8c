// A request that an application sent, until its transaction ends.

import type { ControlClient } from '../control/control-client.ts';
import type { SipRequest } from '../message/sip-message.ts';
import type { ReceivedRequest, SentRequest } from '../sip-stack.ts';
import type { SipPeer } from '../transport/sip-peer.ts';
import type { Dialog } from './dialog.ts';

export type Outgoing = {
  readonly transactionId: string;
  /** Empty for a request outside dialogs. */
  readonly dialogId: string;
  /** Changes if the application has disconnected and another connection cancels the request. */
  client: ControlClient;
  request: SipRequest;
  readonly peer: SipPeer;
  sent: SentRequest | undefined;
  readonly callId: string;
  readonly fromTag: string;
  readonly cseq: number;
  readonly contact: string;
  /** The dialog in which the request was sent, or that it created. */
  dialog: Dialog | undefined;
  /** True if the request is outside any dialog. */
  readonly initial: boolean;
  /**
   * State of the CANCEL. While `waiting`, it can't be sent until a provisional response arrives
   * (RFC 3261 section 9.1).
   */
  cancel:
    | { readonly state: 'none' }
    | { readonly state: 'waiting'; readonly text: SipRequest }
    | { readonly state: 'sent' };
  lastRseq: string | undefined;
  /** ACKs for other fork branches that answered too, by To tag. */
  forkAcks: Map<string, string> | undefined;
  /**
   * A request that arrived from the peer before there was a dialog. The application answers it
   * under this transaction's id.
   */
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
