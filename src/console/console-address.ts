// Where a browser finds the console. The header `Host` has no influence: an attacker who chose it
// would receive the token of the link.

import { isIP } from 'node:net';
import { isThisMachine, type PublicUrl } from './guard.ts';

export type ListeningAddress = {
  readonly publicUrl: PublicUrl;
  /** HTTP_HOST. */
  readonly host: string;
};

/**
 * PUBLIC_URL, or this machine at the port that the gateway listens on.
 * @returns undefined if the gateway listens only on an address of a network and has no PUBLIC_URL:
 *   it serves no console then.
 */
export function consoleAddress(
  { publicUrl, host }: ListeningAddress,
  port: number,
): string | undefined {
  if (publicUrl !== undefined) return `${publicUrl.replace(/\/+$/, '')}/console`;
  const name = loopbackOf(host);
  return isThisMachine(name) ? `http://${name}:${port}/console` : undefined;
}

/** Behind `#`: the token is in no log of a proxy, and in no Referer. */
export function linkWith(address: string, token: string): string {
  return `${address}#token=${token}`;
}

/** What listens on every address is reached on loopback too. */
function loopbackOf(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return isIP(host) === 6 ? `[${host}]` : host;
}
