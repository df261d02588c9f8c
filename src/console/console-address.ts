// Determines the address of the console for links. It ignores the header `Host`: an attacker who
// chose the address would receive the link's token.

import { isIP } from 'node:net';
import { isThisMachine, type PublicUrl } from './guard.ts';

export type ListeningAddress = {
  readonly publicUrl: PublicUrl;
  /** HTTP_HOST. */
  readonly host: string;
};

/**
 * Returns the address below PUBLIC_URL, or else on loopback at the port that the gateway listens
 * on.
 *
 * @returns undefined if the gateway serves no console, because it listens only on a network address
 * and has no PUBLIC_URL
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

/** Returns a host to reach the gateway at: loopback if it listens on all addresses. */
function reachableHost(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return isIP(host) === 6 ? `[${host}]` : host;
}
