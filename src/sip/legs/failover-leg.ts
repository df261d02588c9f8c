// Tries to place a call over its trunk's gateways, with one INVITE at a time, each with its own
// Call-ID. Only moves on to the next gateway if `failover.ts` allows it. To the call, all attempts
// look like one leg, which reports an event for each failed attempt and a single end. `released`
// resolves when every attempt, including the failed ones, has ended on the wire.

import type {
  CallLeg,
  LegObserver,
  PlaceRequest,
  ReferEvent,
  ReferRequest,
} from '../../calls/ports.ts';
import { inBackground } from '../../lib/in-background.ts';
import type { EngineLink } from '../engine/engine-link.ts';
import { dnsFailure, type Route } from '../trunks/routing.ts';
import { gatewayUri } from '../trunks/trunk-uris.ts';
import { boundedLegEvent, boundedReferEvent } from './bounded-reasons.ts';
import { type AttemptFailure, mayFailOver } from './failover.ts';
import { type AttemptObserver, type LegDependencies, OutboundLeg } from './outbound-leg.ts';

export type FailoverDependencies = LegDependencies & {
  /**
   * Picks a connected engine. Returns undefined if no engine is connected or this process is
   * shutting down.
   */
  readonly pickLink: () => EngineLink | undefined;
  /**
   * Updates the gateway's health. `hasRung` is true if a provisional response above 100 preceded
   * the failure.
   */
  readonly onAttemptFailed: (route: Route, failure: AttemptFailure, hasRung: boolean) => void;
};

type Path = { readonly route: Route; readonly link: EngineLink };

const notAllowed = { reason: 'this process may send no more INVITEs', kind: 'transport' } as const;

const unreachable = {
  suppressed: { reason: 'The number is suppressed', kind: 'suppressed' },
  'outside-hours': { reason: "The number's calling hours have ended", kind: 'outside-hours' },
  unknown: {
    reason: 'It could not be checked whether the number is suppressed',
    kind: 'transport',
  },
} as const;

/**
 * - rung: a provisional response above 100 has arrived, so we won't try another gateway.
 * - over: we've notified the observer of the end.
 */
type FailoverState = 'trying' | 'rung' | 'over';

export class FailoverLeg implements CallLeg {
  readonly released: Promise<void>;
  readonly #request: PlaceRequest;
  readonly #observer: LegObserver;
  readonly #dependencies: FailoverDependencies;
  readonly #onTheWire = new Set<OutboundLeg>();
  #release: () => void = () => undefined;
  #routes: readonly Route[] = [];
  /** The latest attempt. Undefined before the first INVITE. */
  #attempt: OutboundLeg | undefined;
  #state: FailoverState = 'trying';
  /** True while we wait to hear whether the target may be reached. No attempt is then under way. */
  #isAsking = false;
  /** True once an INVITE may have left. */
  #mayHaveSent = false;

  constructor(request: PlaceRequest, observer: LegObserver, dependencies: FailoverDependencies) {
    this.#request = request;
    this.#observer = { observe: (event) => observer.observe(boundedLegEvent(event)) };
    this.#dependencies = dependencies;
    this.released = new Promise((resolve) => {
      this.#release = resolve;
    });
  }

  /** Sends the first INVITE, unless the call has already given up on this leg. */
  start(routes: readonly Route[]): void {
    if (this.#state === 'over') return;
    if (this.#request.mayInvite?.() === false) {
      this.#end(notAllowed);
      return;
    }
    this.#routes = routes;
    this.#whenReachable(() => {
      const path = this.#nextPath();
      if (path === undefined) this.fail('no SIP engine is connected');
      else this.#tryGateway(path);
    });
  }

  /**
   * Runs `invite` if the target may still be reached, at once if nobody has to be asked. Otherwise
   * ends the leg.
   */
  #whenReachable(invite: () => void): void {
    const answer = this.#request.mayReach?.();
    if (answer === undefined) {
      invite();
      return;
    }
    this.#isAsking = true;
    const invited = answer.then((reachability) => {
      this.#isAsking = false;
      if (this.#state === 'over') return;
      if (reachability !== 'free') this.#end(unreachable[reachability]);
      else if (this.#request.mayInvite?.() === false) this.#end(notAllowed);
      else invite();
    });
    inBackground(invited, this.#dependencies.logger, 'inviting a target that may be reached');
  }

  /** Fails the leg if we can't send its INVITE, because there is no route or no engine. */
  fail(reason: string): void {
    if (this.#attempt === undefined) this.#end({ reason, kind: 'transport' });
  }

  cancel(reason: string): void {
    if (this.#attempt !== undefined && !this.#isAsking) this.#attempt.cancel(reason);
    else this.#end({ sipStatus: 487, reason, kind: 'cancelled' });
  }

  acknowledge(): void {
    this.#attempt?.acknowledge();
  }

  hangUp(reason: string): void {
    if (this.#attempt !== undefined && !this.#isAsking) this.#attempt.hangUp(reason);
    else this.cancel(reason);
  }

  refer(request: ReferRequest, report: (event: ReferEvent) => void): void {
    this.#attempt?.refer(request, (event) => report(boundedReferEvent(event)));
  }

  async press(digit: string, durationMs: number): Promise<boolean> {
    return (await this.#attempt?.press(digit, durationMs)) === true;
  }

  #nextPath(): Path | undefined {
    const [route] = this.#routes;
    const link = route === undefined ? undefined : this.#dependencies.pickLink();
    return route === undefined || link === undefined ? undefined : { route, link };
  }

  #tryGateway({ route, link }: Path): void {
    this.#routes = this.#routes.slice(1);
    if (route.unresolved !== undefined) {
      this.#failUnresolved(route, route.unresolved);
      return;
    }
    const attempt = new OutboundLeg(this.#request, this.#observerFor(route), this.#dependencies);
    this.#attempt = attempt;
    this.#onTheWire.add(attempt);
    const released = attempt.released.then(() => {
      this.#onTheWire.delete(attempt);
      this.#settle();
    });
    inBackground(released, this.#dependencies.logger, 'noting that an attempt is off the wire');
    attempt.start(link, route);
  }

  /** Fails an attempt without an INVITE, as the engine does if it can't resolve a name. */
  #failUnresolved(route: Route, why: string): void {
    const at = this.#dependencies.clock.now();
    const reason = `${dnsFailure}: ${why}`;
    const notSent = true;
    this.#onAttemptFailed(route, at, { kind: 'stack', sipStatus: 503, reason, at, notSent });
  }

  /**
   * Returns the observer for an attempt. Once an attempt has failed, it never reports anything
   * again, so every event belongs to the latest attempt.
   */
  #observerFor(route: Route): AttemptObserver {
    const startedAt = this.#dependencies.clock.now();
    return {
      observe: (event) => {
        if (event.kind === 'failed') {
          this.#onAttemptFailed(route, startedAt, event.failure);
          return;
        }
        if (event.kind === 'provisional' && event.status > 100 && this.#state === 'trying') {
          this.#state = 'rung';
        }
        if (event.kind === 'ended') this.#state = 'over';
        this.#observer.observe(event);
      },
    };
  }

  #onAttemptFailed(route: Route, startedAt: Date, failure: AttemptFailure): void {
    const { logger, onAttemptFailed } = this.#dependencies;
    const hasRung = this.#state === 'rung';
    if (failure.notSent !== true) this.#mayHaveSent = true;
    onAttemptFailed(route, failure, hasRung);
    const mayRetry = mayFailOver(failure, hasRung) && this.#request.mayInvite?.() !== false;
    const next = mayRetry ? this.#nextPath() : undefined;
    if (next === undefined) {
      this.#end(failure);
      return;
    }
    const { sipStatus, reason, kind, at, facts } = failure;
    const { gateway, hop } = route;
    logger.info(
      {
        ...{ callId: this.#request.callId, gateway, sipStatus, kind, next: next.route.gateway },
        ...(hop !== undefined && { address: gatewayUri(hop) }),
      },
      'gateway failed, trying the next one',
    );
    const attempt = {
      gateway,
      ...(sipStatus !== undefined && { sipStatus }),
      reason,
      durationMs: Math.max(0, at.getTime() - startedAt.getTime()),
      ...(facts?.cause !== undefined && { cause: facts.cause }),
    };
    this.#observer.observe({ kind: 'attemptFailed', attempt });
    this.#whenReachable(() => {
      // The engine may have gone in the meantime.
      const path = this.#nextPath();
      if (path === undefined) this.#end(failure);
      else this.#tryGateway(path);
    });
  }

  #end({ sipStatus, reason, kind, facts }: Omit<AttemptFailure, 'at'>): void {
    if (this.#state === 'over') return;
    this.#state = 'over';
    const failure = {
      at: this.#dependencies.clock.now(),
      ...(sipStatus !== undefined && { sipStatus }),
      reason,
      kind,
      ...(facts !== undefined && { facts }),
      ...(!this.#mayHaveSent && { isUnsent: true as const }),
    };
    this.#observer.observe({ kind: 'failed', failure });
    this.#settle();
  }

  #settle(): void {
    if (this.#state === 'over' && this.#onTheWire.size === 0) this.#release();
  }
}
