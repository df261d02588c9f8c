// Decides which non-public networks the gateway may connect to if *_ALLOWED_NETWORKS isn't set.
// With a configuration that is typical of a developer's laptop, we allow loopback. Once other
// machines can reach the gateway, or the gateway uses external servers or carriers, we don't allow
// any. Services on loopback often trust every client that can connect, so the gateway must not
// connect to them on a remote client's behalf.

import ipaddr from 'ipaddr.js';
import type { Config } from '../config.ts';

const loopbackNetworks = ['127.0.0.0/8', '::1/128'];

/**
 * Returns the names of the variables that go beyond a laptop's configuration, e.g. because they set
 * an external server.
 */
export function beyondLaptop(config: Config, hasTrunks: boolean): readonly string[] {
  const { http, databaseUrl, drachtioServers } = config;
  const isBeyond = {
    HTTP_HOST: !isLocal(http.host),
    PUBLIC_URL: http.publicUrl !== undefined && !isLocal(new URL(http.publicUrl).hostname),
    DATABASE_URL: databaseUrl !== undefined,
    DRACHTIO_URL: drachtioServers !== undefined,
    TRUNKS_FILE: hasTrunks,
  };
  return Object.entries(isBeyond).flatMap(([name, isSet]) => (isSet ? [name] : []));
}

/** Returns true if only programs on this machine can reach the API. */
export function isServedLocally({ http }: Pick<Config, 'http'>): boolean {
  const { host, publicUrl } = http;
  return isLocal(host) && (publicUrl === undefined || isLocal(new URL(publicUrl).hostname));
}

/**
 * Returns the non-public networks to allow: either those that are configured or the default.
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
