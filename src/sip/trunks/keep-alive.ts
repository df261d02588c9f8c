// Keeps NAT bindings to a carrier open with OPTIONS, for trunks with `keepalive: options`. The
// binding belongs to an engine's own port, so every engine sends them. The responses don't decide
// whether a gateway is up, because that's what `health` is for.

import { inBackground } from '../../lib/in-background.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Gateway, Trunk } from './trunks.ts';

type KeepAliveOptions = {
  readonly intervalMs: number;
  /** Sends OPTIONS from every engine. */
  readonly probe: (gateway: Gateway, trunk: Trunk, timeoutMs: number) => Promise<void>;
  readonly logger: Logger;
};

/** As for health probes: long enough to repeat the request three times over UDP. */
const timeoutMs = 5_000;

export class KeepAlive {
  readonly #options: KeepAliveOptions;
  #timers: NodeJS.Timeout[] = [];

  constructor(options: KeepAliveOptions) {
    this.#options = options;
  }

  /** Replaces the trunks. The first OPTIONS follow after one interval. */
  watch(trunks: readonly Trunk[]): void {
    this.close();
    this.#timers = trunks
      .filter(({ keepalive }) => keepalive === 'options')
      .flatMap((trunk) => trunk.gateways.map((gateway) => this.#keep(gateway, trunk)));
  }

  close(): void {
    for (const timer of this.#timers) clearInterval(timer);
    this.#timers = [];
  }

  #keep(gateway: Gateway, trunk: Trunk): NodeJS.Timeout {
    const { intervalMs, probe, logger } = this.#options;
    let isProbing = false;
    const timer = setInterval(() => {
      // Requests to a gateway that doesn't respond must not pile up.
      if (isProbing) return;
      isProbing = true;
      const probed = probe(gateway, trunk, timeoutMs).finally(() => {
        isProbing = false;
      });
      inBackground(probed, logger, 'keeping a NAT binding open');
    }, intervalMs);
    timer.unref();
    return timer;
  }
}
