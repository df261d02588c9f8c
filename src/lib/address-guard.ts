// Guards against SSRF. A client must not be able to make us connect to this machine, the private
// network or a cloud's metadata service by naming it as a receiver of notifications or audio. We
// check addresses at connection time, because otherwise a name could resolve to a harmless address
// for the check and to a private address for the connection.

import type { LookupAddress } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';
import { createHostResolver, type Resolver } from './host-resolver.ts';

export class AddressNotAllowedError extends Error {
  constructor() {
    // The message omits the address, which could reveal something about the network.
    super('the address is private, local or reserved');
    this.name = 'AddressNotAllowedError';
  }
}

export type AddressGuard = {
  isAddressAllowed(address: string): boolean;
  /**
   * Checks an IP literal, in any notation that URLs normalise. We can't check host names until they
   * have been resolved, so host names pass here unless no address is allowed at all.
   */
  isHostAllowed(url: URL): boolean;
  /**
   * Pass this to the socket. The function resolves the name and rejects it if even one of the
   * addresses is forbidden.
   */
  readonly lookup: LookupFunction;
};

/** @param allowedNetworks CIDR networks to allow even though they aren't public */
export function createAddressGuard(
  allowedNetworks: readonly string[],
  resolve: Resolver = createHostResolver(),
  /** If false, only `allowedNetworks` are allowed. */
  isPublicAllowed = true,
): AddressGuard {
  const allowed = allowedNetworks.map((cidr) => ipaddr.parseCIDR(cidr));
  const isAddressAllowed = (text: string): boolean => {
    if (!ipaddr.isValid(text)) return false;
    // `process` unwraps v4-mapped IPv6 addresses.
    const address = ipaddr.process(text);
    if (allowed.some((network) => isWithin(address, network))) return true;
    if (!isPublicAllowed) return false;
    return address.kind() === 'ipv4' ? address.range() === 'unicast' : isPublicIPv6(address);
  };
  return {
    isAddressAllowed,
    isHostAllowed: (url) => {
      const host = url.hostname.replace(/^\[|\]$/g, '');
      return isIP(host) === 0 ? isPublicAllowed || allowed.length > 0 : isAddressAllowed(host);
    },
    lookup: (hostname, options, answer) => {
      // Sockets call this like `dns.lookup`.
      resolveChecked(hostname, resolve, isAddressAllowed).then(
        (addresses) => {
          if (options.all === true) answer(null, [...addresses]);
          else answer(null, addresses[0].address, addresses[0].family);
        },
        (error: unknown) => answer(asError(error), ''),
      );
    },
  };
}

async function resolveChecked(
  hostname: string,
  resolve: Resolver,
  isAllowed: (address: string) => boolean,
): Promise<readonly [LookupAddress, ...LookupAddress[]]> {
  const [first, ...more] = await resolve(hostname);
  if (first === undefined || ![first, ...more].every(({ address }) => isAllowed(address))) {
    throw new AddressNotAllowedError();
  }
  return [first, ...more];
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error('name not resolved', { cause: error });
}

type Address = ipaddr.IPv4 | ipaddr.IPv6;

function isWithin(address: Address, [network, bits]: [Address, number]): boolean {
  return address.kind() === network.kind() && address.match(network, bits);
}

/**
 * All global unicast addresses are in 2000::/3. Anything outside isn't public, i.e. NAT64
 * (64:ff9b::/96, 64:ff9b:1::/48), IPv4-compatible (::/96), unique local, link-local, site-local and
 * multicast addresses. `isPublicIPv6` also excludes the ranges inside 2000::/3 that embed an IPv4
 * address (6to4, Teredo) or are reserved.
 */
const globalUnicast = ipaddr.parseCIDR('2000::/3');
const documentation = ipaddr.parseCIDR('3fff::/20');

function isPublicIPv6(address: Address): boolean {
  return (
    isWithin(address, globalUnicast) &&
    !isWithin(address, documentation) &&
    address.range() === 'unicast'
  );
}
