// Determines where to send a request, per RFC 3263 but without NAPTR and SRV, because the engine is
// meant for loopback and single hosts, which don't have such records. Names are resolved by the
// operating system, and literal addresses don't need a look-up.

import { isIP } from 'node:net';
import { parseNameAddress, parseSipUri, type SipUri } from '../message/sip-grammar.ts';
import type { SipPeer, SipProtocol } from './sip-peer.ts';

export const defaultSipPort = 5_060;

export type Target =
  | { readonly kind: 'peer'; readonly peer: SipPeer }
  | {
      readonly kind: 'name';
      readonly host: string;
      readonly port: number;
      readonly protocol: SipProtocol;
    }
  | { readonly kind: 'noTransport' }
  | { readonly kind: 'invalid' };

/** Accepts a bare URI, or a URI in angle brackets, as in Route and in drachtio's route field. */
export function targetOf(text: string): Target {
  const address = text.includes('<') ? parseNameAddress(text)?.uri : text;
  const uri = address === undefined ? undefined : parseSipUri(address);
  if (uri === undefined) return { kind: 'invalid' };
  const protocol = protocolOf(uri);
  if (protocol === undefined) return { kind: 'noTransport' };
  const host = uri.parameters.get('maddr') ?? uri.host;
  const port = uri.port ?? defaultSipPort;
  if (host.toLowerCase() === 'localhost') {
    return { kind: 'peer', peer: { protocol, address: '127.0.0.1', port } };
  }
  if (isIP(host) !== 0) return { kind: 'peer', peer: { protocol, address: host, port } };
  return { kind: 'name', host, port, protocol };
}

function protocolOf(uri: SipUri): SipProtocol | undefined {
  if (uri.scheme === 'sips') return undefined;
  const transport = (uri.parameters.get('transport') ?? 'udp').toLowerCase();
  return transport === 'udp' || transport === 'tcp' ? transport : undefined;
}
