// Decides which gateways are worth trying first.
// - Each gateway of a trunk with `health` is probed by OPTIONS at an interval. It is down after
//   `failThreshold` failures in a row, and up again after `recoverThreshold` answers in a row.
// - An INVITE that a gateway met with silence counts as a failed probe.
// - A gateway that answers 503 with Retry-After counts as down for the time it asked for.

import { inBackground } from '../../lib/in-background.ts';
import type { Logger } from '../../lib/logger.ts';
import type { EngineLink } from '../engine/engine-link.ts';
import { type TransactionResult, transact } from '../legs/transaction.ts';
import { gatewayName } from './gateway-name.ts';
import { gatewayUri } from './routing.ts';
import type { Gateway, HealthSettings, Trunk } from './trunks.ts';

export type GatewayState = {
  readonly trunk: string;
  readonly gateway: string;
  readonly isUp: boolean;
};

/** `unknown`: the probe gave no information, e.g. because no engine is connected. */
export type ProbeResult = 'alive' | 'silent' | 'unknown';
export type Probe = (gateway: Gateway, trunk: Trunk, timeoutMs: number) => Promise<ProbeResult>;

/** Time for four transmissions over UDP (RFC 3261, timer E: at 0, 0.5, 1.5 and 3.5 s). */
const probeTimeoutMs = 5_000;

/**
 * Longest pause after a Retry-After. A longer value is cut to this: it may be a mistake, and the
 * gateway can always answer 503 again.
 */
const maxPauseS = 300;

type Watched = {
  readonly trunk: Trunk;
  readonly gateway: Gateway;
  readonly settings: HealthSettings | undefined;
  readonly track: Track;
  timer: NodeJS.Timeout | undefined;
};

/** Observed state of a gateway. It outlives a reload of the trunks. */
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

  /** Replaces the watched gateways by those of `trunks`. A gateway that stays keeps its state. */
  watch(trunks: readonly Trunk[]): void {
    const before = this.#watched;
    for (const { timer } of before.values()) clearTimeout(timer);
    this.#watched = new Map();
    for (const trunk of trunks) {
      for (const gateway of trunk.gateways) {
        const key = keyOf(trunk.name, gatewayName(gateway));
        const known = before.get(key)?.track;
        // The gateway is no longer probed, so no probe would ever mark it as up again.
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
        // First probes are spread over the interval, so that many nodes do not all probe their
        // gateways at once.
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
   * Marks a gateway as down for a while, because it answered 503 with Retry-After (RFC 3261,
   * section 21.5.4).
   */
  pause(trunk: string, gateway: string, seconds: number): void {
    const watched = this.#watched.get(keyOf(trunk, gateway));
    if (watched === undefined || seconds <= 0) return;
    const pausedForS = Math.min(seconds, maxPauseS);
    watched.track.pausedUntilMs = this.#now() + pausedForS * 1_000;
    this.#logger.warn({ trunk, gateway, pausedForS }, 'gateway asked not to be called for a while');
  }

  /** Notes that an INVITE met silence or a closed port. */
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
    // The gateway was replaced or the probing was closed meanwhile.
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
 * Asks a gateway with OPTIONS whether it would take a call (RFC 3261, section 11: the answer is the
 * same as an INVITE would get).
 */
export async function probeGateway(
  link: EngineLink,
  gateway: Gateway,
  timeoutMs: number,
): Promise<ProbeResult> {
  const uri = gatewayUri(gateway);
  const headers = { From: '<sip:offhook@localhost>', To: `<${uri}>`, Accept: 'application/sdp' };
  const options = { method: 'OPTIONS', uri, headers };
  return resultOf(await transact(link, options, { until: 'answered', timeoutMs }));
}

/**
 * Judges an answer to OPTIONS. Many gateways that take calls answer 401, 403, 404 or 405, because
 * the probe's user does not exist. Therefore any answer is a sign of life, except one that reports
 * a server problem. A 501 only says that the server does not know the method.
 */
function resultOf(result: TransactionResult): ProbeResult {
  switch (result.kind) {
    case 'response': {
      const { status, byStack } = result;
      const isInTrouble = status === 408 || (status >= 500 && status !== 501);
      return byStack === true || isInTrouble ? 'silent' : 'alive';
    }
    // The engine cannot reach the gateway, e.g. because it does not support the transport.
    case 'refused':
    case 'timeout':
      return 'silent';
    case 'lost':
      return 'unknown';
  }
}
