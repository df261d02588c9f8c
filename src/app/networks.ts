// Decides which non-public networks the gateway may connect to if *_ALLOWED_NETWORKS is not set.
// With the configuration of a laptop, that is loopback. Once other machines can reach the gateway,
// or the gateway uses servers or carriers, it is no network at all. A service on loopback often
// trusts every client that can connect, so the gateway must not connect to it on behalf of a remote
// client.

import ipaddr from 'ipaddr.js';
import type { Config } from '../config.ts';

const loopbackNetworks = ['127.0.0.0/8', '::1/128'];

/** Returns the variables whose values go beyond the configuration of a laptop. */
export function beyondLaptop(config: Config, hasTrunks: boolean): readonly string[] {
  const { http, databaseUrl, drachtioServers } = config;
  const found = {
    HTTP_HOST: !isLocal(http.host),
    PUBLIC_URL: http.publicUrl !== undefined && !isLocal(new URL(http.publicUrl).hostname),
    DATABASE_URL: databaseUrl !== undefined,
    DRACHTIO_URL: drachtioServers !== undefined,
    TRUNKS_FILE: hasTrunks,
  };
  return Object.entries(found).flatMap(([name, isSo]) => (isSo ? [name] : []));
}

/** Returns true if the configuration lets only programs on this machine reach the API. */
export function isServedLocally({ http }: Pick<Config, 'http'>): boolean {
  const { host, publicUrl } = http;
  return isLocal(host) && (publicUrl === undefined || isLocal(new URL(publicUrl).hostname));
}

/**
 * Returns the non-public networks that are allowed: the configured ones, or the default.
 * @param beyond the result of `beyondLaptop`
 */
export function networksOpenTo(
  configured: readonly string[] | undefined,
  beyond: readonly string[],
): readonly string[] {
  return configured ?? (beyond.length === 0 ? loopbackNetworks : []);
}

function isLocal(host: string): boolean {
  const bare = host.replace(/^\[|\]$/g, '');
  if (ipaddr.isValid(bare)) return ipaddr.process(bare).range() === 'loopback';
  // RFC 6761 section 6.3.
  return /(^|\.)localhost$/i.test(bare);
}
