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
  /** Replaced if the application has disconnected and another connection cancels the request. */
  client: ControlClient;
  request: SipRequest;
  readonly peer: SipPeer;
  sent: SentRequest | undefined;
  readonly callId: string;
  readonly fromTag: string;
  readonly cseq: number;
  readonly contact: string;
  /** The dialog in which the request was sent, or which it created. */
  dialog: Dialog | undefined;
  /** True if the request is outside any dialog. */
  readonly initial: boolean;
  /**
   * State of the CANCEL. `waiting` means that the CANCEL must wait for a provisional response (RFC
   * 3261 section 9.1).
   */
  cancel:
    | { readonly state: 'none' }
    | { readonly state: 'waiting'; readonly text: SipRequest }
    | { readonly state: 'sent' };
  lastRseq: string | undefined;
  /** The ACKs for other branches of a fork that also answered, by To tag. */
  forkAcks: Map<string, string> | undefined;
  /**
   * A request that the peer sent before the dialog exists. The application answers it under this
   * transaction's id.
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
