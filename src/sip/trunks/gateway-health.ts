// Keeps track of which gateways are worth trying first.
// - If a trunk sets `health`, we probe each of its gateways with OPTIONS at an interval. A gateway
//   is down after `failThreshold` failures in a row, and up again after `recoverThreshold`
//   responses in a row.
// - If a gateway doesn't respond to an INVITE at all, that counts as a failed probe.
// - If a gateway responds with 503 and Retry-After, we treat it as down for that time.

import { inBackground } from '../../lib/in-background.ts';
import type { Logger } from '../../lib/logger.ts';
import { capabilityHeaders } from '../capabilities.ts';
import type { EngineLink } from '../engine/engine-link.ts';
import { type TransactionResult, transact } from '../legs/transaction.ts';
import type { HopFinder, NextHop } from './dns/next-hops.ts';
import { gatewayName } from './gateway-name.ts';
import { gatewayUri, nextHopUri, placeOf } from './trunk-uris.ts';
import type { Gateway, HealthSettings, Trunk } from './trunks.ts';

export type GatewayState = {
  readonly trunk: string;
  readonly gateway: string;
  readonly isUp: boolean;
};

/** `unknown` if the probe didn't tell us anything, e.g. because no engine is connected. */
export type ProbeResult = 'alive' | 'silent' | 'unknown';
export type Probe = (gateway: Gateway, trunk: Trunk, timeoutMs: number) => Promise<ProbeResult>;

/**
 * Long enough to transmit the request four times over UDP (RFC 3261, timer E: at 0, 0.5, 1.5 and
 * 3.5 s).
 */
const probeTimeoutMs = 5_000;

/**
 * Maximum pause after a Retry-After. Longer values are cut to this, because they may be mistakes
 * and the gateway can always send another 503.
 */
const maxPauseS = 300;

type Watched = {
  readonly trunk: Trunk;
  readonly gateway: Gateway;
  readonly settings: HealthSettings | undefined;
  readonly track: Track;
  timer: NodeJS.Timeout | undefined;
};

/** Observed state of a gateway. It survives a reload of the trunks. */
type Track = { isDown: boolean; failures: number; successes: number; pausedUntilMs: number };

export class GatewayHealth {
  readonly #probe: Probe;
  readonly #logger: Logger;
  readonly #now: () => number;
  #watched = new Map<string, Watched>();

  constructor(options: {
    readonly probe: Probe;
    readonly logger: Logger;
    /** Monotonic clock in milliseconds. Default: `performance.now`. */
    readonly now?: () => number;
  }) {
    this.#probe = options.probe;
    this.#logger = options.logger;
    this.#now = options.now ?? (() => performance.now());
  }

  /**
   * Starts to watch the gateways in `trunks`. Gateways that were already being watched keep their
   * state.
   */
  watch(trunks: readonly Trunk[]): void {
    const before = this.#watched;
    for (const { timer } of before.values()) clearTimeout(timer);
    this.#watched = new Map();
    for (const trunk of trunks) {
      for (const gateway of trunk.gateways) {
        const key = keyOf(trunk.name, gatewayName(gateway));
        const known = before.get(key)?.track;
        // We no longer probe this gateway, so nothing would ever mark it as up again.
        if (known !== undefined && trunk.health === undefined) known.isDown = false;
        const track = known ?? { isDown: false, failures: 0, successes: 0, pausedUntilMs: 0 };
        const watched: Watched = {
          trunk,
          gateway,
          settings: trunk.health,
          track,
          timer: undefined,
        };
        this.#watched.set(key, watched);
        // Spread the first probes over the interval. Otherwise all nodes might probe at the same
        // moment.
        if (trunk.health !== undefined) this.#arm(watched, Math.random() * trunk.health.intervalMs);
      }
    }
  }

  isUp(trunk: string, gateway: string): boolean {
    const watched = this.#watched.get(keyOf(trunk, gateway));
    return watched === undefined || this.#isUp(watched.track);
  }

  states(): readonly GatewayState[] {
    return [...this.#watched.values()].map(({ trunk, gateway, track }) => ({
      trunk: trunk.name,
      gateway: gatewayName(gateway),
      isUp: this.#isUp(track),
    }));
  }

  /**
   * Marks a gateway as down for a while, because it has responded with 503 and Retry-After (RFC
   * 3261, section 21.5.4).
   */
  pause(trunk: string, gateway: string, seconds: number): void {
    const watched = this.#watched.get(keyOf(trunk, gateway));
    if (watched === undefined || seconds <= 0) return;
    const pausedForS = Math.min(seconds, maxPauseS);
    watched.track.pausedUntilMs = this.#now() + pausedForS * 1_000;
    this.#logger.warn({ trunk, gateway, pausedForS }, 'gateway asked not to be called for a while');
  }

  /** Records that an INVITE got no response or met a closed port. */
  noteSilence(trunk: string, gateway: string): void {
    const watched = this.#watched.get(keyOf(trunk, gateway));
    if (watched?.settings !== undefined) this.#count(watched, watched.settings, 'silent');
  }

  close(): void {
    for (const { timer } of this.#watched.values()) clearTimeout(timer);
    this.#watched.clear();
  }

  #isUp(track: Track): boolean {
    return !track.isDown && this.#now() >= track.pausedUntilMs;
  }

  #arm(watched: Watched, delayMs: number): void {
    const probe = (): void =>
      inBackground(this.#runProbe(watched), this.#logger, 'probing a gateway');
    watched.timer = setTimeout(probe, delayMs);
    watched.timer.unref();
  }

  async #runProbe(watched: Watched): Promise<void> {
    const { settings, gateway, trunk } = watched;
    if (settings === undefined) return;
    const timeoutMs = Math.min(settings.intervalMs, probeTimeoutMs);
    const startedAt = this.#now();
    const result = await this.#probe(gateway, trunk, timeoutMs).catch((error: unknown) => {
      this.#logger.error({ err: error, trunk: trunk.name }, 'gateway could not be probed');
      return 'unknown' as const;
    });
    // In the meantime, the gateway has been replaced or `close` has been called.
    if (this.#watched.get(keyOf(trunk.name, gatewayName(gateway))) !== watched) return;
    this.#count(watched, settings, result);
    this.#arm(watched, Math.max(0, settings.intervalMs - (this.#now() - startedAt)));
  }

  #count({ trunk, gateway, track }: Watched, settings: HealthSettings, result: ProbeResult): void {
    const names = { trunk: trunk.name, gateway: gatewayName(gateway) };
    switch (result) {
      case 'alive':
        track.failures = 0;
        track.successes += 1;
        if (!track.isDown || track.successes < settings.recoverThreshold) return;
        track.isDown = false;
        this.#logger.info(names, 'gateway is up again');
        return;
      case 'silent':
        track.successes = 0;
        track.failures += 1;
        if (track.isDown || track.failures < settings.failThreshold) return;
        track.isDown = true;
        this.#logger.warn({ ...names, failures: track.failures }, 'gateway is down');
        return;
      case 'unknown':
        return;
    }
  }
}

function keyOf(trunk: string, gateway: string): string {
  return `${trunk} ${gateway}`;
}

/**
 * Sends OPTIONS to ask a gateway whether it would accept a call. The response is the same as for an
 * INVITE (RFC 3261, section 11).
 */
async function probeHop(
  link: EngineLink,
  gateway: Gateway,
  trunk: Trunk,
  hop: NextHop,
  timeoutMs: number,
): Promise<ProbeResult> {
  const uri = gatewayUri(gateway);
  const headers = {
    From: '<sip:offhook@localhost>',
    To: `<${uri}>`,
    ...capabilityHeaders,
    Accept: 'application/sdp',
  };
  const options = { method: 'OPTIONS', uri, headers, proxy: nextHopUri(trunk, gateway, hop) };
  return probeResultOf(await transact(link, options, { until: 'answered', timeoutMs }));
}

/**
 * Probes all addresses of a gateway together. One that responds is enough, because calls try all of
 * them, and first those that responded.
 */
export async function probeGateway(
  link: EngineLink,
  { gateway, trunk, hops }: { gateway: Gateway; trunk: Trunk; hops: HopFinder },
  timeoutMs: number,
): Promise<ProbeResult> {
  const found = await hops.find(placeOf(trunk, gateway));
  if (found.kind === 'unresolved') return 'silent';
  const results = await Promise.all(
    found.hops.map(async (hop) => {
      const result = await probeHop(link, gateway, trunk, hop, timeoutMs);
      if (result === 'alive') hops.welcome(hop);
      if (result === 'silent') hops.avoid(hop);
      return result;
    }),
  );
  if (results.includes('alive')) return 'alive';
  return results.every((result) => result === 'silent') ? 'silent' : 'unknown';
}

/**
 * Interprets the response to OPTIONS. Many gateways that accept calls respond with 401, 403, 404 or
 * 405, because the probe's user doesn't exist. That's why any response is a sign of life, unless it
 * reports a server problem. A 501 only means that the server doesn't implement the method.
 */
function probeResultOf(result: TransactionResult): ProbeResult {
  switch (result.kind) {
    case 'response': {
      const { status, byStack } = result;
      const isInTrouble = status === 408 || (status >= 500 && status !== 501);
      return byStack === true || isInTrouble ? 'silent' : 'alive';
    }
    // The engine can't reach the gateway, e.g. because the engine doesn't support the transport.
    case 'refused':
    case 'timeout':
      return 'silent';
    case 'lost':
      return 'unknown';
  }
}
