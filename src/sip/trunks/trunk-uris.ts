// Writes the SIP URIs of a trunk: the domain that its requests carry, and where they go. These
// differ behind an outbound proxy, at a registrar whose domain isn't its address, and after DNS.

import { isIP } from 'node:net';
import type { Place } from './dns/locate.ts';
import type { GatewayAddress } from './gateway-name.ts';
import type { Gateway, Trunk } from './trunks.ts';

/**
 * Escapes characters that the user part of a SIP URI must not contain (RFC 3261, section 25.1),
 * most importantly CR and LF.
 */
export function userPart(text: string): string {
  return text.replace(/%(?![0-9A-Fa-f]{2})|[^A-Za-z0-9\-_.!~*'()&=+$,;?/%]/gu, (character) =>
    encodeURIComponent(character).replace(
      /^[^%]$/,
      (plain) => `%${plain.charCodeAt(0).toString(16)}`,
    ),
  );
}

export function authority(place: { readonly host: string; readonly port?: number }): string {
  return `${bracketed(place.host)}${place.port === undefined ? '' : `:${place.port}`}`;
}

export function bracketed(host: string): string {
  return isIP(host) === 6 ? `[${host}]` : host;
}

/**
 * Returns a gateway's URI. For TLS too, we use `sip:` with a transport parameter. A `sips:` URI
 * would require TLS on every hop behind the gateway as well (RFC 5630, section 3.1.3), which
 * carriers don't offer.
 */
export function gatewayUri(gateway: GatewayAddress): string {
  return `sip:${authority(gateway)}${transportParameter(gateway)}`;
}

/**
 * Returns the URI that a SIP engine sends a request for this gateway to. Over TLS, the embedded
 * engine has to know which trunk's settings apply, and whom the certificate must be for, so two
 * parameters say that. Others say which address to send from, and that the connection is kept
 * alive. They never reach the wire, because the next hop isn't part of the message. drachtio-server
 * doesn't get them.
 *
 * @param hop the address to which the host has been resolved. The certificate must be for the host
 * all the same (RFC 5922, section 4).
 */
export function nextHopUri(
  trunk: Pick<Trunk, 'name' | 'tls' | 'outboundProxy' | 'keepalive' | 'localAddress'>,
  gateway: Gateway,
  hop: GatewayAddress = unresolvedHop(trunk, gateway),
): string {
  const isKeptAlive = trunk.keepalive === 'crlf' && hop.transport !== 'udp';
  const from =
    trunk.localAddress === undefined ? '' : `;local-address=${bracketed(trunk.localAddress)}`;
  const uri = `${gatewayUri(hop)}${isKeptAlive ? ';keepalive=crlf' : ''}${from}`;
  if (hop.transport !== 'tls' || trunk.tls === undefined) return uri;
  const { host } = trunk.outboundProxy ?? gateway;
  return `${uri};tls-trunk=${trunk.name};tls-host=${bracketed(host)}`;
}

/** Whether `nextHopUri` has added the parameters for the embedded engine. */
export function namesTlsIdentity(nextHop: string): boolean {
  return nextHop.includes(';tls-trunk=');
}

/** Removes such parameters from a far end's URI, which can't choose the settings of a trunk. */
export function withoutTlsIdentity(uri: string): string {
  return uri.replace(/;\s*tls-(?:trunk|host)\s*=[^;>]*/gi, '');
}

export function transportParameter({ transport }: Pick<GatewayAddress, 'transport'>): string {
  return transport === 'udp' ? '' : `;transport=${transport}`;
}

/**
 * Returns the Contact for a carrier that must not see the engine's own address. Its transport is
 * that of the request, so that the carrier's requests come back the same way.
 * @param user SIP user of a registration. A call's Contact has no user
 */
export function publicContact(
  { publicSipHost }: Pick<Trunk, 'publicSipHost'>,
  transport: GatewayAddress['transport'],
  user?: string,
): string | undefined {
  if (publicSipHost === undefined) return undefined;
  const at = user === undefined ? '' : `${user}@`;
  return `<sip:${at}${authority(publicSipHost)}${transportParameter({ transport })}>`;
}

/** Where requests to this gateway of the trunk go, before DNS. */
export function placeOf(trunk: Trunk, gateway: Gateway): Place {
  const { host, port } = trunk.outboundProxy ?? gateway;
  const { transport, findsTransport } = gateway;
  return {
    ...{ host, port, transport: findsTransport === true ? undefined : transport },
    // drachtio-server verifies the name that it connects to, and can't be told another one.
    isTlsByName: trunk.tls === undefined,
  };
}

/** Like `placeOf`, for an engine that resolves the name itself. */
function unresolvedHop(
  { outboundProxy }: Pick<Trunk, 'outboundProxy'>,
  { host, port, transport }: Gateway,
): GatewayAddress {
  const place = outboundProxy ?? (port === undefined ? { host } : { host, port });
  return { ...place, transport };
}

/**
 * Returns the domain in request URIs and To, with the gateway's port. If the trunk registers at
 * `fromDomain`, that domain is the registrar's, and calls are addressed to it as well.
 */
export function domainOf({ register, fromDomain }: Trunk, gateway: Gateway): string {
  return register !== undefined && fromDomain !== undefined
    ? bracketed(fromDomain)
    : authority(gateway);
}

/**
 * Returns the host in From. An account's user only exists in its provider's domain, so with `user`
 * the gateway's host is the default, and so it is behind an outbound proxy.
 * @returns undefined for the engine's own address
 */
export function fromHost(trunk: Trunk, gateway: Gateway): string | undefined {
  const { user, outboundProxy, fromDomain } = trunk;
  const isAccount = user !== undefined || outboundProxy !== undefined;
  const domain = fromDomain ?? (isAccount ? gateway.host : undefined);
  return domain === undefined ? undefined : bracketed(domain);
}
