// The engine's own address, which we use in Via, in Contact, and in place of `localhost`.

import { networkInterfaces } from 'node:os';
import type { SipProtocol } from '../transport/sip-peer.ts';
import { defaultSipPort } from '../transport/sip-target.ts';
import { bracketedHost, formatHostPort } from './sip-grammar.ts';

/**
 * Replaces a wildcard address with the machine's first external address, because peers can't send
 * to a wildcard.
 */
export function advertisedHost(listenHost: string): string {
  if (listenHost !== '0.0.0.0' && listenHost !== '::') return listenHost;
  const family = listenHost === '::' ? 'IPv6' : 'IPv4';
  const addresses = Object.values(networkInterfaces()).flatMap((entries) => entries ?? []);
  const usable = addresses.find((address) => !address.internal && address.family === family);
  return usable?.address ?? (family === 'IPv6' ? '::1' : '127.0.0.1');
}

export type LocalIdentity = {
  readonly host: string;
  readonly port: number;
};

/** Like sofia-sip, we omit the default port and only ask for rport over UDP. */
export function viaValue(local: LocalIdentity, protocol: SipProtocol, branch: string): string {
  const address =
    protocol !== 'tls' && local.port === defaultSipPort
      ? bracketedHost(local.host)
      : formatHostPort(local.host, local.port);
  const rport = protocol === 'udp' ? ';rport' : '';
  return `SIP/2.0/${protocol.toUpperCase()} ${address}${rport};branch=${branch}`;
}

export function localUri(local: LocalIdentity, protocol: SipProtocol): string {
  const suffix = protocol === 'udp' ? '' : `;transport=${protocol}`;
  return `sip:${formatHostPort(local.host, local.port)}${suffix}`;
}

const placeholder = 'localhost';

/** Replaces the `@localhost` that drachtio-srf writes for "the engine's own address". */
export function replaceLocalhost(value: string, local: LocalIdentity): string {
  const index = value.indexOf(`@${placeholder}`);
  if (index < 0) return value;
  const after = value.charAt(index + 1 + placeholder.length);
  // Don't replace `@localhost.example` or `@localhost:5080`, which are different hosts.
  if (/[A-Za-z0-9.:-]/.test(after)) return value;
  const head = value.slice(0, index + 1);
  return `${head}${formatHostPort(local.host, local.port)}${value.slice(index + 1 + placeholder.length)}`;
}

export function isSelf(local: LocalIdentity, host: string, port: number): boolean {
  return port === local.port && host === local.host;
}
