// Keeps what callers name as a receiver (of notifications, of audio) from being aimed at the inside: our own machine, the
// private network, a cloud's metadata service. Addresses are judged where the connection is made, so that a name cannot
// resolve to one thing for the check and to another for the connection.

import type { LookupAddress } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';
import { createHostResolver, type Resolver } from './host-resolver.ts';

export class AddressNotAllowedError extends Error {
  constructor() {
    // Which address it was would tell the caller about our network.
    super('the address is private, local or reserved');
    this.name = 'AddressNotAllowedError';
  }
}

export type AddressGuard = {
  isAddressAllowed(address: string): boolean;
  /**
   * Judges an IP literal in any notation that URLs normalise. A name is judged when it is resolved,
   * unless no address is allowed at all.
   */
  isHostAllowed(url: URL): boolean;
  /** For the connection itself: resolves, and gives only what was checked. One bad address among several refuses all. */
  readonly lookup: LookupFunction;
};

/** `allowedNetworks`: CIDR, what is reachable although it is not public. */
export function createAddressGuard(
  allowedNetworks: readonly string[],
  resolve: Resolver = createHostResolver(),
  /** False: nothing but those networks. */
  isPublicAllowed = true,
): AddressGuard {
  const allowed = allowedNetworks.map((cidr) => ipaddr.parseCIDR(cidr));
  const isAddressAllowed = (text: string): boolean => {
    if (!ipaddr.isValid(text)) return false;
    // A v4-mapped address is the IPv4 address in other clothes.
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
      // In the form of `dns.lookup`, which is what sockets ask.
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
 * Global unicast is 2000::/3 and nothing else: that leaves out NAT64 (64:ff9b::/96, 64:ff9b:1::/48), IPv4-compatible
 * (::/96), unique local, link-local, site-local and multicast. Within it, what carries an IPv4 address (6to4, Teredo)
 * or is reserved is left out by name.
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
