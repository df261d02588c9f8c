// One call over the gateways of its trunk: an INVITE at a time, each with a Call-ID of its own, the next one only where
// `failover.ts` allows it. For the call it is one leg: it hears of the attempts, and of one end. `released` waits for every
// attempt, given up or not.

import type {
  CallLeg,
  LegObserver,
  PlaceRequest,
  ReferEvent,
  ReferRequest,
} from '../../calls/ports.ts';
import { inBackground } from '../../lib/in-background.ts';
import type { EngineLink } from '../engine/engine-link.ts';
import type { Route } from '../trunks/routing.ts';
import { type AttemptFailure, mayFailOver } from './failover.ts';
import { type AttemptObserver, type LegDependencies, OutboundLeg } from './outbound-leg.ts';

export type FailoverDependencies = LegDependencies & {
  /** Undefined: no engine is connected, or we are going down. */
  readonly pickLink: () => EngineLink | undefined;
  /** For what is thought of the gateway. `hasRung`: it had a phone ring before. */
  readonly onAttemptFailed: (route: Route, failure: AttemptFailure, hasRung: boolean) => void;
};

type Way = { readonly route: Route; readonly link: EngineLink };

/** A reason phrase is the far end's; it goes into events and must not fill them. */
const maxReasonLength = 200;

/** rung: the far end has said more than 100, so that no other gateway is tried. over: the observer was told the end. */
type FailoverState = 'trying' | 'rung' | 'over';

export class FailoverLeg implements CallLeg {
  readonly released: Promise<void>;
  readonly #request: PlaceRequest;
  readonly #observer: LegObserver;
  readonly #dependencies: FailoverDependencies;
  readonly #onTheWire = new Set<OutboundLeg>();
  #release: () => void = () => undefined;
  #routes: readonly Route[] = [];
  /** The last one that was begun. */
  #attempt: OutboundLeg | undefined;
  #state: FailoverState = 'trying';

  constructor(request: PlaceRequest, observer: LegObserver, dependencies: FailoverDependencies) {
    this.#request = request;
    this.#observer = observer;
    this.#dependencies = dependencies;
    this.released = new Promise((resolve) => {
      this.#release = resolve;
    });
  }

  /** Sends the first INVITE, unless the leg was given up before. */
  start(routes: readonly Route[]): void {
    if (this.#state === 'over') return;
    if (this.#request.mayInvite?.() === false) {
      this.fail('no INVITE may leave any more');
      return;
    }
    this.#routes = routes;
    const way = this.#nextWay();
    if (way === undefined) this.fail('no SIP engine is connected');
    else this.#try(way);
  }

  /** No way to send it: no route, no engine. */
  fail(reason: string): void {
    if (this.#attempt === undefined) this.#end({ reason, kind: 'transport' });
  }

  cancel(reason: string): void {
    if (this.#attempt !== undefined) this.#attempt.cancel(reason);
    else this.#end({ sipStatus: 487, reason, kind: 'cancelled' });
  }

  acknowledge(): void {
    this.#attempt?.acknowledge();
  }

  hangUp(reason: string): void {
    if (this.#attempt !== undefined) this.#attempt.hangUp(reason);
    else this.cancel(reason);
  }

  refer(request: ReferRequest, tell: (event: ReferEvent) => void): void {
    this.#attempt?.refer(request, tell);
  }

  async press(digit: string, durationMs: number): Promise<boolean> {
    return (await this.#attempt?.press(digit, durationMs)) === true;
  }

  #nextWay(): Way | undefined {
    const [route] = this.#routes;
    const link = route === undefined ? undefined : this.#dependencies.pickLink();
    return route === undefined || link === undefined ? undefined : { route, link };
  }

  #try({ route, link }: Way): void {
    this.#routes = this.#routes.slice(1);
    const attempt = new OutboundLeg(this.#request, this.#listen(route), this.#dependencies);
    this.#attempt = attempt;
    this.#onTheWire.add(attempt);
    const released = attempt.released.then(() => {
      this.#onTheWire.delete(attempt);
      this.#settle();
    });
    inBackground(released, this.#dependencies.logger, 'noting that an attempt is off the wire');
    attempt.start(link, route);
  }

  /** An attempt that has failed tells nothing more, so what is told is always of the last one. */
  #listen(route: Route): AttemptObserver {
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
    onAttemptFailed(route, failure, hasRung);
    const mayGoOn = mayFailOver(failure, hasRung) && this.#request.mayInvite?.() !== false;
    const next = mayGoOn ? this.#nextWay() : undefined;
    if (next === undefined) {
      this.#end(failure);
      return;
    }
    const { sipStatus, reason, kind, at } = failure;
    const { gateway } = route;
    logger.info(
      { callId: this.#request.callId, gateway, sipStatus, kind, next: next.route.gateway },
      'gateway failed, the next one is tried',
    );
    const attempt = {
      gateway,
      ...(sipStatus !== undefined && { sipStatus }),
      reason: reason.slice(0, maxReasonLength),
      durationMs: Math.max(0, at.getTime() - startedAt.getTime()),
    };
    this.#observer.observe({ kind: 'attemptFailed', attempt });
    this.#try(next);
  }

  #end({ sipStatus, reason, kind }: Omit<AttemptFailure, 'at'>): void {
    if (this.#state === 'over') return;
    this.#state = 'over';
    const failure = {
      at: this.#dependencies.clock.now(),
      ...(sipStatus !== undefined && { sipStatus }),
      reason,
      kind,
    };
    this.#observer.observe({ kind: 'failed', failure });
    this.#settle();
  }

  #settle(): void {
    if (this.#state === 'over' && this.#onTheWire.size === 0) this.#release();
  }
}
