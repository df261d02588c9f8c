// The TLS settings of the gateway's trunks, by trunk. The gateway passes them to the engine at
// start-up and after a reload. A request names its trunk in the route's URI parameters, which never
// reach the wire.

import { createSecureContext, type SecureContext } from 'node:tls';
import type { TlsIdentity } from './sip-peer.ts';

export type TlsSettings = {
  /** CA certificates (PEM) that the far end's certificate must come from. Default: the system's. */
  readonly ca?: string;
  /** Client certificate (PEM), with its chain. */
  readonly cert?: string;
  /** Private key (PEM) of `cert`. */
  readonly key?: string;
  /** Name that the far end's certificate must contain, and that SNI asks for. Default: the host. */
  readonly serverName?: string;
};

export type TlsTable = Readonly<Record<string, TlsSettings>>;

/** URI parameters of a route: the trunk whose settings apply, and the host to verify. */
export const tlsTrunkParameter = 'tls-trunk';
export const tlsHostParameter = 'tls-host';

type Entry = {
  readonly settings: TlsSettings;
  readonly text: string;
  readonly version: number;
  readonly context: SecureContext;
};

export class TlsDirectory {
  #entries = new Map<string, Entry>();
  readonly #defaults: Entry = { settings: {}, text: '', version: 0, context: contextFor({}) };
  #version = 0;

  /**
   * Replaces all settings. Settings that stay the same keep their version.
   * @throws Error if a certificate or key can't be used, in which case nothing changes
   */
  replace(table: TlsTable): void {
    const version = this.#version + 1;
    this.#entries = new Map(
      Object.entries(table).map(([trunk, settings]) => {
        const text = JSON.stringify(settings);
        const known = this.#entries.get(trunk);
        if (known?.text === text) return [trunk, known];
        return [trunk, { settings, text, version, context: contextFor(settings) }];
      }),
    );
    this.#version = version;
  }

  /** Identity of a far end as the trunk's settings have it now. */
  identify(trunk: string, host: string): TlsIdentity {
    const { settings, version } = this.#entryOf(trunk);
    return { trunk, name: settings.serverName ?? host, version };
  }

  contextOf(trunk: string): SecureContext {
    return this.#entryOf(trunk).context;
  }

  #entryOf(trunk: string): Entry {
    return this.#entries.get(trunk) ?? this.#defaults;
  }
}

function contextFor({ ca, cert, key }: TlsSettings): SecureContext {
  return createSecureContext({
    minVersion: 'TLSv1.2',
    ...(ca !== undefined && { ca }),
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key }),
  });
}
