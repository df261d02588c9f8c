// Which gateways are worth trying first. Each gateway of a trunk with `health` is asked by OPTIONS at an interval; so many
// failures in a row and it is down, so many answers in a row and it is up again. An INVITE that the gateway met with silence
// counts as a failed probe. Beside this, a 503 with Retry-After takes any gateway out for the time that it asked for.

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

/** `unknown`: nothing was learned, e.g. because no engine is connected. */
export type ProbeResult = 'alive' | 'silent' | 'unknown';
export type Probe = (gateway: Gateway, trunk: Trunk, timeoutMs: number) => Promise<ProbeResult>;

/** Time for four transmissions over UDP (RFC 3261, timer E: at 0, 0.5, 1.5 and 3.5 s). */
const probeTimeoutMs = 5_000;

/** A carrier that asks for more is asked again all the same: the wish may be a mistake, and the last word is its next 503. */
const maxPauseS = 300;

type Watched = {
  readonly trunk: Trunk;
  readonly gateway: Gateway;
  readonly settings: HealthSettings | undefined;
  readonly track: Track;
  timer: NodeJS.Timeout | undefined;
};

/** What is thought of a gateway; outlives a reload of the trunks. */
type Track = { isDown: boolean; failures: number; successes: number; pausedUntilMs: number };

export class GatewayHealth {
  readonly #probe: Probe;
  readonly #logger: Logger;
  readonly #now: () => number;
  #watched = new Map<string, Watched>();

  constructor(options: {
    readonly probe: Probe;
    readonly logger: Logger;
    /** Milliseconds that never run backwards. */
    readonly now?: () => number;
  }) {
    this.#probe = options.probe;
    this.#logger = options.logger;
    this.#now = options.now ?? (() => performance.now());
  }

  /** These from here on, instead of those before; a gateway that stays keeps its state. */
  watch(trunks: readonly Trunk[]): void {
    const before = this.#watched;
    for (const { timer } of before.values()) clearTimeout(timer);
    this.#watched = new Map();
    for (const trunk of trunks) {
      for (const gateway of trunk.gateways) {
        const key = keyOf(trunk.name, gatewayName(gateway));
        const known = before.get(key)?.track;
        // No probe asks any more, so none would ever say that it is up.
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
        // Spread over the interval, so that the gateways of many nodes are not all asked in one moment.
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

  /** It answered 503 with Retry-After (RFC 3261, section 21.5.4). */
  pause(trunk: string, gateway: string, seconds: number): void {
    const watched = this.#watched.get(keyOf(trunk, gateway));
    if (watched === undefined || seconds <= 0) return;
    const pausedForS = Math.min(seconds, maxPauseS);
    watched.track.pausedUntilMs = this.#now() + pausedForS * 1_000;
    this.#logger.warn({ trunk, gateway, pausedForS }, 'gateway asked not to be called for a while');
  }

  /** An INVITE met silence or a closed port. */
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
    const ask = (): void => inBackground(this.#ask(watched), this.#logger, 'asking a gateway');
    watched.timer = setTimeout(ask, delayMs);
    watched.timer.unref();
  }

  async #ask(watched: Watched): Promise<void> {
    const { settings, gateway, trunk } = watched;
    if (settings === undefined) return;
    const timeoutMs = Math.min(settings.intervalMs, probeTimeoutMs);
    const startedAt = this.#now();
    const result = await this.#probe(gateway, trunk, timeoutMs).catch((error: unknown) => {
      this.#logger.error({ err: error, trunk: trunk.name }, 'gateway could not be asked');
      return 'unknown' as const;
    });
    // Replaced or closed meanwhile.
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

/** Asks a gateway with OPTIONS whether it would take a call (RFC 3261, section 11: the answer is what an INVITE would get). */
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
 * Many gateways answer OPTIONS with 401, 403, 404 or 405, for there is no such user, and take calls all the same: any answer
 * is a sign of life, but those that say that the server is in trouble. 501 only says that it does not know the method.
 */
function resultOf(result: TransactionResult): ProbeResult {
  switch (result.kind) {
    case 'response': {
      const { status, byStack } = result;
      const isInTrouble = status === 408 || (status >= 500 && status !== 501);
      return byStack === true || isInTrouble ? 'silent' : 'alive';
    }
    // The engine has no way to it, e.g. no such transport.
    case 'refused':
    case 'timeout':
      return 'silent';
    case 'lost':
      return 'unknown';
  }
}
