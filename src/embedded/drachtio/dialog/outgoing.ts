// A request that an application has sent, while its transaction is still running.

import type { ControlClient } from '../control/control-client.ts';
import type { SipRequest } from '../message/sip-message.ts';
import type { ReceivedRequest, SentRequest } from '../sip-stack.ts';
import type { SipPeer } from '../transport/sip-peer.ts';
import type { Dialog } from './dialog.ts';

export type Outgoing = {
  readonly transactionId: string;
  /** Empty if the request is outside any dialog. */
  readonly dialogId: string;
  /**
   * This changes if the application has disconnected and the request is cancelled over a different
   * connection.
   */
  client: ControlClient;
  request: SipRequest;
  readonly peer: SipPeer;
  sent: SentRequest | undefined;
  readonly callId: string;
  readonly fromTag: string;
  readonly cseq: number;
  readonly contact: string;
  /** The dialog in which the request was sent, or that was created by a response to it. */
  dialog: Dialog | undefined;
  /** True if the request is outside any dialog. */
  readonly initial: boolean;
  /**
   * State of the CANCEL. `waiting` means that we can't send it until a provisional response arrives
   * (RFC 3261 section 9.1).
   */
  cancel:
    | { readonly state: 'none' }
    | { readonly state: 'waiting'; readonly text: SipRequest }
    | { readonly state: 'sent' };
  /**
   * True if the connection on which the final response would have arrived is lost. The application
   * has already received a generated response.
   */
  isLost: boolean;
  lastRseq: string | undefined;
  /** The SDP before this request's offer, to which we return if the offer is refused. */
  replacedSdp: string | undefined;
  /** ACKs for other fork branches that have answered as well, by To tag. */
  forkAcks: Map<string, string> | undefined;
  /**
   * A request from the peer that arrived before the dialog was created. The application responds to
   * it using this transaction's id.
   */
  earlyRequest: ReceivedRequest | undefined;
};

type OutgoingSeed = Omit<
  Outgoing,
  | 'initial'
  | 'sent'
  | 'cancel'
  | 'isLost'
  | 'lastRseq'
  | 'replacedSdp'
  | 'forkAcks'
  | 'earlyRequest'
>;

export function newOutgoing(seed: OutgoingSeed): Outgoing {
  return {
    ...seed,
    initial: seed.dialog === undefined,
    sent: undefined,
    cancel: { state: 'none' },
    isLost: false,
    lastRseq: undefined,
    replacedSdp: undefined,
    forkAcks: undefined,
    earlyRequest: undefined,
  };
}
