// Determines the address at which a browser finds the console. The header `Host` has no influence:
// an attacker who chose it would receive the token of the link.

import { isIP } from 'node:net';
import { isThisMachine, type PublicUrl } from './guard.ts';

export type ListeningAddress = {
  readonly publicUrl: PublicUrl;
  /** HTTP_HOST. */
  readonly host: string;
};

/**
 * Returns the address below PUBLIC_URL, or on loopback at the port that the gateway listens on.
 *
 * @returns undefined if the gateway listens only on a network address and has no PUBLIC_URL. It
 * then serves no console
 */
export function consoleAddress(
  { publicUrl, host }: ListeningAddress,
  port: number,
): string | undefined {
  if (publicUrl !== undefined) return `${publicUrl.replace(/\/+$/, '')}/console`;
  const name = loopbackOf(host);
  return isThisMachine(name) ? `http://${name}:${port}/console` : undefined;
}

/** Puts the token after `#`, so that it appears in no proxy log and in no Referer. */
export function linkWith(address: string, token: string): string {
  return `${address}#token=${token}`;
}

/**
 * Returns a host at which the gateway is reached. A gateway that listens on all addresses is
 * reached on loopback, too.
 */
function loopbackOf(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return isIP(host) === 6 ? `[${host}]` : host;
}
