// Decides which non-public networks the gateway may connect to if *_ALLOWED_NETWORKS is not set.
// Loopback is allowed while the gateway runs with the configuration of a laptop. Nothing is allowed
// once other machines can reach the gateway, or the gateway uses servers or carriers. The reason: a
// service on loopback trusts every client that can connect, and the gateway must not connect to it
// on behalf of a remote caller.

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

/** True if, according to the configuration, only programs of this machine can reach the API. */
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
