// Which networks that are not public are open where *_ALLOWED_NETWORKS does not say: loopback while the gateway is as it comes
// on a laptop, and nothing once others can reach it or it reaches others. A service that listens on loopback trusts all that
// can connect to it, and a caller of ours must not be the one who does.

import ipaddr from 'ipaddr.js';
import type { Config } from '../config.ts';

const loopbackNetworks = ['127.0.0.0/8', '::1/128'];

/** The variables that make the gateway more than a laptop's. */
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

/** Only programs of this machine reach the API, as far as the configuration says. */
export function isServedLocally({ http }: Pick<Config, 'http'>): boolean {
  const { host, publicUrl } = http;
  return isLocal(host) && (publicUrl === undefined || isLocal(new URL(publicUrl).hostname));
}

/** @param beyond of `beyondLaptop`. */
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
