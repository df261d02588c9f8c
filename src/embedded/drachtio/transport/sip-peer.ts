// The address of a SIP peer, and what all transports have in common.

import type { Logger } from '../../../lib/logger.ts';
import { formatHostPort } from '../message/sip-grammar.ts';
import type { EngineClock, SipTimers } from '../transaction/engine-timing.ts';

export type SipProtocol = 'udp' | 'tcp';

export type SipPeer = {
  readonly protocol: SipProtocol;
  readonly address: string;
  readonly port: number;
};

export function peerKey(peer: SipPeer): string {
  return `${peer.protocol}/${formatHostPort(peer.address, peer.port)}`;
}

export type TransportOptions = {
  readonly host: string;
  readonly port: number;
  readonly timers: SipTimers;
  readonly clock: EngineClock;
  readonly logger: Logger;
};

export type TransportHandlers = {
  /** `text` is one SIP message, with one character per byte. */
  readonly onMessage: (text: string, peer: SipPeer) => void;
  /**
   * Called if messages can't reach the peer, i.e. after ICMP port unreachable, or if a connection
   * was refused or broke.
   */
  readonly onFailure: (peer: SipPeer) => void;
};
