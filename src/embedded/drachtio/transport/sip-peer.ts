// The address of a SIP peer, and what all transports have in common.

import type { Logger } from '../../../lib/logger.ts';
import { formatHostPort } from '../message/sip-grammar.ts';
import type { EngineClock, SipTimers } from '../transaction/engine-timing.ts';

export type SipProtocol = 'udp' | 'tcp' | 'tls';

/** The name that a TLS peer must prove, and the settings that apply to its connection. */
export type TlsIdentity = {
  /** The host name or address that the peer's certificate must contain. */
  readonly name: string;
  /** Key of the settings in the engine's `TlsTable`. Empty: the default settings. */
  readonly trunk: string;
  /** Version of these settings, so that a connection isn't reused after they have changed. */
  readonly version: number;
};

export type SipPeer = {
  readonly protocol: SipProtocol;
  readonly address: string;
  readonly port: number;
  /** Only set for TLS. */
  readonly tls?: TlsIdentity;
  /** The connection is kept alive with CRLFs (RFC 5626 section 3.5.1). Not for UDP. */
  readonly keepsAlive?: true;
  /** The address that we send from. Default: the transport's own. */
  readonly local?: string;
};

export function peerKey({ protocol, address, port, tls, local }: SipPeer): string {
  const from = local === undefined ? '' : `${local}/`;
  const key = `${protocol}/${from}${formatHostPort(address, port)}`;
  return tls === undefined ? key : `${key}/${tls.trunk}/${tls.version}/${tls.name}`;
}

/** Whether the transport itself retransmits what is lost (RFC 3261 section 17). */
export function isReliable(protocol: SipProtocol): boolean {
  return protocol !== 'udp';
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
   * was refused or broke. `reason` says why, in words, if the transport knows.
   */
  readonly onFailure: (peer: SipPeer, reason?: string) => void;
};
