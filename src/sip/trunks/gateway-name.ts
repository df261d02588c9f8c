// Formats a gateway's name for events, logs and metrics: host and port, followed by the transport
// unless that's UDP.

import { isIP } from 'node:net';

export type GatewayAddress = {
  readonly host: string;
  /** Default: the transport's own port, 5060 or 5061. */
  readonly port?: number;
  readonly transport: 'udp' | 'tcp' | 'tls';
};

export function gatewayName({
  host,
  port,
  transport,
}: Omit<GatewayAddress, 'port'> & { readonly port?: number | undefined }): string {
  const shownPort = port ?? (transport === 'tls' ? 5_061 : 5_060);
  const suffix = transport === 'udp' ? '' : `;transport=${transport}`;
  return `${isIP(host) === 6 ? `[${host}]` : host}:${shownPort}${suffix}`;
}
