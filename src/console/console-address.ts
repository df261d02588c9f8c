// Determines the console's address for links. It ignores the `Host` header, because an attacker
// who could choose the address would receive the link's token.

import { isIP } from 'node:net';
import { isThisMachine, type PublicUrl } from './guard.ts';

export type ListeningAddress = {
  readonly publicUrl: PublicUrl;
  /** HTTP_HOST. */
  readonly host: string;
};

/**
 * Returns an address below PUBLIC_URL. If PUBLIC_URL isn't set, returns a loopback address with the
 * port that the gateway listens on.
 *
 * @returns undefined if the gateway listens only on a network address and PUBLIC_URL isn't set, in
 * which case it doesn't serve the console
 */
export function consoleAddress(
  { publicUrl, host }: ListeningAddress,
  port: number,
): string | undefined {
  if (publicUrl !== undefined) return `${publicUrl.replace(/\/+$/, '')}/console`;
  const name = reachableHost(host);
  return isThisMachine(name) ? `http://${name}:${port}/console` : undefined;
}

/** Puts the token after `#`, which keeps it out of proxy logs and the Referer. */
export function linkWith(address: string, token: string): string {
  return `${address}#token=${token}`;
}

/** Returns the host for reaching the gateway, which is loopback if it listens on all addresses. */
function reachableHost(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return isIP(host) === 6 ? `[${host}]` : host;
}
