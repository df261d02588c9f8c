// Determines where to send a request, per RFC 3263 but without NAPTR and SRV, because the engine is
// meant for loopback and single hosts, which don't have such records. Names are resolved by the
// operating system, and literal addresses don't need a look-up.

import { isIP } from 'node:net';
import { parseNameAddress, parseSipUri, type SipUri } from '../message/sip-grammar.ts';
import type { SipPeer, SipProtocol, TlsIdentity } from './sip-peer.ts';
import { tlsHostParameter, tlsTrunkParameter } from './tls-settings.ts';

export const defaultSipPort = 5_060;
const defaultTlsPort = 5_061;

/** URI parameter of a route: the address to send from. */
const localAddressParameter = 'local-address';
/** URI parameter of a route: how to keep the connection alive. */
const keepAliveParameter = 'keepalive';

/** The identity to verify, before the trunk's settings are looked up. */
type TlsName = Omit<TlsIdentity, 'version'>;

/** A peer whose TLS identity still has to be completed, see `TlsDirectory`. */
export type TargetPeer = Omit<SipPeer, 'tls'> & { readonly tls?: TlsName };

export type Target =
  | { readonly kind: 'peer'; readonly peer: TargetPeer }
  | {
      readonly kind: 'name';
      readonly host: string;
      readonly port: number;
      readonly protocol: SipProtocol;
      readonly tls?: TlsName;
      readonly keepsAlive?: true;
      readonly local?: string;
    }
  | { readonly kind: 'noTransport' }
  | { readonly kind: 'invalid' };

/**
 * Accepts a bare URI, or a URI in angle brackets. The URI may come from the far end, so it can't
 * choose a trunk's settings.
 */
export function targetOf(text: string): Target {
  return locate(text, () => ({}));
}

/**
 * Like `targetOf`, for the route that an application gives us in a field of its own. The route may
 * say more about the connection, e.g. the trunk whose TLS settings apply.
 */
export function targetOfRoute(text: string): Target {
  return locate(text, connectionOf);
}

type ConnectionOptions = Pick<TargetPeer, 'tls' | 'keepsAlive' | 'local'>;

function locate(
  text: string,
  optionsOf: (uri: SipUri, protocol: SipProtocol) => ConnectionOptions,
): Target {
  const address = text.includes('<') ? parseNameAddress(text)?.uri : text;
  const uri = address === undefined ? undefined : parseSipUri(address);
  if (uri === undefined) return { kind: 'invalid' };
  const protocol = protocolOf(uri);
  if (protocol === undefined) return { kind: 'noTransport' };
  const host = uri.parameters.get('maddr') ?? uri.host;
  const port = uri.port ?? (protocol === 'tls' ? defaultTlsPort : defaultSipPort);
  const more = {
    ...(protocol === 'tls' && { tls: { name: uri.host, trunk: '' } }),
    ...optionsOf(uri, protocol),
  };
  if (host.toLowerCase() === 'localhost') {
    return { kind: 'peer', peer: { protocol, address: '127.0.0.1', port, ...more } };
  }
  if (isIP(host) !== 0) return { kind: 'peer', peer: { protocol, address: host, port, ...more } };
  return { kind: 'name', host, port, protocol, ...more };
}

/** What the route says about the connection to the peer. */
function connectionOf(uri: SipUri, protocol: SipProtocol): ConnectionOptions {
  const isKeptAlive = protocol !== 'udp' && uri.parameters.get(keepAliveParameter) === 'crlf';
  const local = uri.parameters.get(localAddressParameter)?.replace(/^\[(.*)\]$/, '$1');
  return {
    ...(protocol === 'tls' && { tls: tlsNameOf(uri) }),
    ...(isKeptAlive && { keepsAlive: true }),
    ...(local !== undefined && isIP(local) !== 0 && { local }),
  };
}

/** The host in the URI counts unless the application names the gateway that it has resolved. */
function tlsNameOf({ host, parameters }: SipUri): TlsName {
  const given = parameters.get(tlsHostParameter);
  const name = given?.replace(/^\[(.*)\]$/, '$1') ?? host;
  return { name, trunk: parameters.get(tlsTrunkParameter) ?? '' };
}

function protocolOf(uri: SipUri): SipProtocol | undefined {
  // A far end's Contact or Record-Route may be a `sips:` URI. Our own requests never are.
  if (uri.scheme === 'sips') return 'tls';
  const transport = (uri.parameters.get('transport') ?? 'udp').toLowerCase();
  return transport === 'udp' || transport === 'tcp' || transport === 'tls' ? transport : undefined;
}
