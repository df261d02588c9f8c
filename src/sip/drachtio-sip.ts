// Implements `SipPort` with any number of drachtio servers, and spreads calls across the connected
// ones. If we lose a server, its calls end within seconds, and `AbandonedLegs` cleans up dialogs
// that the far ends still have up.

import type { SipCapture } from '../calls/capture/capture.ts';
import type { LegEndResult, StoredLeg } from '../calls/contract/stored-leg.ts';
import type { KeyTransport } from '../calls/keys/keys.ts';
import type { MediaOffer } from '../calls/media.ts';
import type { CallLeg, Clock, LegObserver, PlaceRequest, SipPort } from '../calls/ports.ts';
import type { DrachtioServer } from '../config.ts';
import { Changes } from '../lib/changes.ts';
import { inBackground } from '../lib/in-background.ts';
import type { Logger } from '../lib/logger.ts';
import { within } from '../lib/within.ts';
import { EngineConnection } from './engine/engine-connection.ts';
import type { EngineLink } from './engine/engine-link.ts';
import { defaultSipLimits, type SipLimits } from './engine/sip-limits.ts';
import { AbandonedLegs } from './legs/abandoned-legs.ts';
import { type AttemptFailure, isSilence, pauseOf } from './legs/failover.ts';
import { FailoverLeg } from './legs/failover-leg.ts';
import { endStoredLegOn } from './legs/stored-leg-end.ts';
import { createDnsClient, type DnsClientOptions } from './trunks/dns/dns-client.ts';
import { createHopFinder, type HopFinder } from './trunks/dns/next-hops.ts';
import { GatewayHealth, type GatewayState, probeGateway } from './trunks/gateway-health.ts';
import type { Dice } from './trunks/gateway-order.ts';
import { KeepAlive } from './trunks/keep-alive.ts';
import { Registrations } from './trunks/registrations.ts';
import { type Credentials, createRouter, type Route } from './trunks/routing.ts';
import type { TrunkDirectory } from './trunks/trunks.ts';

export type DrachtioSipOptions = {
  readonly servers: readonly DrachtioServer[];
  readonly trunks: TrunkDirectory;
  /** CIDR networks in which calls may dial a `sip:` target without a trunk. */
  readonly allowedNetworks: readonly string[];
  readonly logger: Logger;
  readonly clock: Clock;
  readonly limits?: Partial<SipLimits>;
  /**
   * Asks other processes to end a leg, because one of them may be able to reach the leg's engine
   * even if this process can't. Never rejects. Default: there are no other processes.
   */
  readonly askOthers?: (leg: StoredLeg) => Promise<LegEndResult>;
  /** Receives the SIP messages of all calls. Default: messages aren't captured. */
  readonly capture?: SipCapture;
  /** Chooses between gateways of the same priority. Default: `Math.random`. */
  readonly dice?: Dice;
  /** How to resolve the gateways' names. Default: the operating system's DNS servers. */
  readonly dns?: DnsClientOptions;
};

export type DrachtioSip = SipPort &
  AsyncDisposable & {
    /** Whether a call can be placed now. */
    ready(): boolean;
    /** The connected engines, each as host:port. */
    connected(): readonly string[];
    /** All engines, each as host:port, in the order of the configuration. */
    engines(): readonly { readonly engine: string; readonly isUp: boolean }[];
    /** Number of legs with open transactions, including legs whose calls have ended. */
    liveLegs(): number;
    /** State of every trunk's gateways, for metrics. */
    gateways(): readonly GatewayState[];
    /**
     * Starts probing the gateways of the current `trunks` and registering with them. Call this
     * after replacing `trunks`.
     */
    watchGateways(): void;
  };

export function createDrachtioSip(options: DrachtioSipOptions): DrachtioSip {
  return new DrachtioPool(options);
}

class DrachtioPool implements DrachtioSip {
  readonly #limits: SipLimits;
  readonly #options: DrachtioSipOptions;
  readonly #router: ReturnType<typeof createRouter>;
  readonly #connections: readonly EngineConnection[];
  readonly #hops: HopFinder;
  readonly #health: GatewayHealth;
  readonly #registrations: Registrations;
  readonly #keepAlive: KeepAlive;
  readonly #legs = new Set<FailoverLeg>();
  readonly #linkChanges = new Changes();
  readonly #abandoned: AbandonedLegs;
  #nextConnection = 0;
  #isDisposed = false;

  constructor(options: DrachtioSipOptions) {
    this.#options = options;
    this.#limits = { ...defaultSipLimits, ...options.limits };
    const hops = createHopFinder({
      dns: createDnsClient(options.dns ?? {}),
      timeoutMs: this.#limits.resolveTimeoutMs,
      ...(options.dice !== undefined && { dice: options.dice }),
    });
    this.#hops = hops;
    this.#health = new GatewayHealth({
      logger: options.logger,
      probe: async (gateway, trunk, timeoutMs) => {
        const link = this.#pickLink();
        return link === undefined
          ? 'unknown'
          : probeGateway(link, { gateway, trunk, hops }, timeoutMs);
      },
    });
    this.#registrations = new Registrations({ limits: this.#limits, logger: options.logger, hops });
    this.#keepAlive = new KeepAlive({
      ...{ logger: options.logger, intervalMs: this.#limits.keepAliveMs },
      probe: async (gateway, trunk, timeoutMs) => {
        for (const { link } of this.#connections) {
          if (link !== undefined) await probeGateway(link, { gateway, trunk, hops }, timeoutMs);
        }
      },
    });
    this.#router = createRouter({
      trunks: options.trunks,
      allowedNetworks: options.allowedNetworks,
      resolveTimeoutMs: this.#limits.resolveTimeoutMs,
      isUp: (trunk, gateway) => this.#health.isUp(trunk, gateway),
      hops,
      ...(options.dice !== undefined && { dice: options.dice }),
    });
    this.#abandoned = new AbandonedLegs({
      limits: this.#limits,
      logger: options.logger,
      linkOf: (engine) => this.#linkOf(engine),
      otherLink: (engine) => this.#pickLink(engine),
      credentialsOf: (leg) => this.#credentialsOf(leg),
      askOthers: options.askOthers ?? (async () => 'unreachable'),
    });
    this.#connections = options.servers.map(
      (server) =>
        new EngineConnection({
          server,
          limits: this.#limits,
          logger: options.logger,
          takesUnsolicited: true,
          onMessage: options.capture && ((message) => options.capture?.add(message)),
          onUp: (link) => this.#onUp(link),
        }),
    );
    this.watchGateways();
  }

  ready(): boolean {
    return !this.#isDisposed && this.connected().length > 0;
  }

  connected(): readonly string[] {
    return this.#connections.flatMap(({ engine, link }) => (link === undefined ? [] : [engine]));
  }

  engines(): readonly { readonly engine: string; readonly isUp: boolean }[] {
    return this.#connections.map(({ engine, link }) => ({ engine, isUp: link !== undefined }));
  }

  liveLegs(): number {
    return this.#legs.size;
  }

  gateways(): readonly GatewayState[] {
    return this.#health.states();
  }

  watchGateways(): void {
    const { all } = this.#options.trunks;
    this.#health.watch(all);
    this.#keepAlive.watch(all);
    this.#registrations.watch(
      all,
      this.#connections.flatMap(({ link }) => link ?? []),
    );
  }

  offerFor(name: string | undefined): MediaOffer {
    const trunk = name === undefined ? undefined : this.#options.trunks.get(name);
    return { codecs: trunk?.codecs ?? ['PCMU', 'PCMA'], encryption: trunk?.media ?? 'rtp' };
  }

  keysFor(trunk: string | undefined): KeyTransport {
    return (trunk === undefined ? undefined : this.#options.trunks.get(trunk))?.dtmf ?? 'rtp';
  }

  place(request: PlaceRequest, observer: LegObserver): CallLeg {
    const { clock, logger } = this.#options;
    const leg = new FailoverLeg(request, safeObserver(observer, logger), {
      clock,
      logger,
      limits: this.#limits,
      pickLink: () => (this.#isDisposed ? undefined : this.#pickLink()),
      onAttemptFailed: (route, failure, hasRung) => this.#noteFailure(route, failure, hasRung),
      onAbandoned: (stored) => this.#abandoned.add(stored),
      referTo: (target, trunk) => this.#router.referTo(target, trunk),
      capture: this.#options.capture,
    });
    this.#legs.add(leg);
    const forgotten = leg.released.then(() => this.#legs.delete(leg));
    inBackground(forgotten, logger, 'forgetting a leg that is off the wire');
    inBackground(this.#dial(leg, request), logger, 'placing a call');
    return leg;
  }

  async endOrphan(orphan: StoredLeg): Promise<LegEndResult> {
    const deadline = performance.now() + this.#limits.orphanTimeoutMs;
    const link = await this.#linkFor(orphan.engine, this.#limits.orphanTimeoutMs / 2);
    if (link === undefined) return 'unreachable';
    const orphanTimeoutMs = Math.max(1, deadline - performance.now());
    const limits = { ...this.#limits, orphanTimeoutMs };
    return endStoredLegOn(link, orphan, limits, this.#credentialsOf(orphan));
  }

  #credentialsOf({ trunk }: StoredLeg): Credentials | undefined {
    return trunk === undefined ? undefined : this.#options.trunks.get(trunk)?.auth;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isDisposed = true;
    this.#health.close();
    this.#registrations.close();
    this.#keepAlive.close();
    const legs = [...this.#legs];
    for (const leg of legs) leg.hangUp('gateway stopped');
    await within(Promise.all(legs.map((leg) => leg.released)), this.#limits.disposeTimeoutMs);
    this.#abandoned.close();
    for (const connection of this.#connections) connection.close();
    this.#linkChanges.notify();
  }

  /**
   * Notes that a gateway didn't respond or doesn't want calls. While the gateway has other
   * addresses that the call goes on to try, that's a fact about the address only.
   */
  #noteFailure(route: Route, failure: AttemptFailure, hasRung: boolean): void {
    const { trunk, gateway, hop, hasMoreHops = false } = route;
    if (trunk === undefined) return;
    const isSilent = isSilence(failure) && !hasRung;
    const pauseS = pauseOf(failure);
    if (hop !== undefined && (isSilent || pauseS !== undefined)) this.#hops.avoid(hop);
    if (hasMoreHops) return;
    if (isSilent) this.#health.noteSilence(trunk, gateway);
    if (pauseS !== undefined) this.#health.pause(trunk, gateway, pauseS);
  }

  async #dial(leg: FailoverLeg, request: PlaceRequest): Promise<void> {
    try {
      const result = await this.#router.resolve(request);
      if (result.ok) leg.start(result.routes);
      else leg.fail(result.reason);
    } catch (error) {
      this.#options.logger.error(
        { err: error, callId: request.callId },
        'call could not be placed',
      );
      leg.fail('internal error');
    }
  }

  /**
   * Picks a connected engine, round robin.
   * @returns undefined if no engine but `except` is connected
   */
  #pickLink(except?: string): EngineLink | undefined {
    for (let tries = 0; tries < this.#connections.length; tries += 1) {
      const connection = this.#connections[this.#nextConnection % this.#connections.length];
      this.#nextConnection += 1;
      if (connection?.link !== undefined && connection.engine !== except) return connection.link;
    }
    return undefined;
  }

  #linkOf(engine: string): EngineLink | undefined {
    return this.#connections.find((connection) => connection.engine === engine)?.link;
  }

  /**
   * Waits up to `timeoutMs` for the engine that placed the leg, and returns its link. Falls back to
   * any connected engine.
   */
  async #linkFor(engine: string, timeoutMs: number): Promise<EngineLink | undefined> {
    const isConfigured = this.#connections.some((connection) => connection.engine === engine);
    const isUp = () =>
      this.#connections.some(
        (connection) =>
          connection.link !== undefined && (!isConfigured || connection.engine === engine),
      );
    await this.#linkChanges.until(() => this.#isDisposed || isUp(), timeoutMs);
    return this.#linkOf(engine) ?? this.#pickLink();
  }

  #onUp(link: EngineLink): void {
    this.#linkChanges.notify();
    this.#abandoned.onUp(link);
    this.#registrations.onUp(link);
  }
}

/**
 * Catches an observer's exceptions, which could otherwise affect other calls: they'd abort the loop
 * that notifies all legs when an engine connection breaks, or close the control connection that all
 * calls share.
 */
function safeObserver(observer: LegObserver, logger: Logger): LegObserver {
  return {
    observe(event) {
      try {
        observer.observe(event);
      } catch (error) {
        logger.error({ err: error, event: event.kind }, 'observer of a leg failed');
      }
    },
  };
}
