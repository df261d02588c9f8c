// The SIP port that this process's calls use. It doesn't send any INVITE unless we hold the lease.
// That includes a leg's later INVITEs, because a paused process may wake up long after another
// process has ended the call. Before the INVITE to each gateway, it checks that the target hasn't
// been suppressed since the call was taken, and that its hours haven't ended: a call may wait for
// its turn, or for a gateway that says nothing. The port also reports when a call's legs are off
// the wire, i.e. when no SIP transaction or dialog is left.

import type { CallId } from '../calls/contract/identity.ts';
import type {
  CallLeg,
  Clock,
  LegObserver,
  PlaceRequest,
  Reachability,
  SipPort,
  SuppressionCheck,
} from '../calls/ports.ts';
import { inBackground } from '../lib/in-background.ts';
import type { Logger } from '../lib/logger.ts';
import { within } from '../lib/within.ts';

export type GuardedSip = SipPort & {
  /** Resolves when the call's legs are off the wire, or immediately if it has no legs. */
  untilReleased(callId: CallId): Promise<void>;
  /** Returns the calls that have a leg on the wire. */
  onTheWire(): readonly CallId[];
  /** Waits for up to `timeoutMs` until none of this process's legs is on the wire any more. */
  idle(timeoutMs: number): Promise<void>;
  /** Notifies the watcher about all legs from now on. */
  watch(watcher: LegWatcher): void;
};

export type LegWatcher = {
  /** For a first leg, `legId` is the call's id. */
  onPlaced(legId: string): void;
  onReleased(legId: string): void;
  /** Called when the call's last leg is off the wire. */
  onOffTheWire(callId: CallId): void;
};

export function guardSip(
  sip: SipPort,
  options: {
    readonly mayPlace: () => boolean;
    readonly suppressions: SuppressionCheck;
    readonly clock: Clock;
    readonly logger: Logger;
  },
): GuardedSip {
  /** The `released` promises of each call's unreleased legs. */
  const legs = new Map<CallId, Set<Promise<void>>>();
  const watchers: LegWatcher[] = [];

  function place(request: PlaceRequest, observer: LegObserver): CallLeg {
    const { callId, legId = callId } = request;
    if (!options.mayPlace()) {
      for (const watcher of watchers) watcher.onReleased(legId);
      return refusedLeg(observer, options.clock);
    }
    const { ruledAccountId } = request;
    const mayReach =
      ruledAccountId === undefined
        ? {}
        : { mayReach: () => reachNow({ ...request, ruledAccountId }, options) };
    const leg = sip.place({ ...request, mayInvite: options.mayPlace, ...mayReach }, observer);
    for (const watcher of watchers) watcher.onPlaced(legId);
    const callLegs = legs.get(callId) ?? new Set();
    callLegs.add(leg.released);
    legs.set(callId, callLegs);
    const released = leg.released.then(() => {
      callLegs.delete(leg.released);
      for (const watcher of watchers) watcher.onReleased(legId);
      if (callLegs.size > 0) return;
      legs.delete(callId);
      for (const watcher of watchers) watcher.onOffTheWire(callId);
    });
    inBackground(released, options.logger, 'reporting that a leg is off the wire');
    return leg;
  }

  const untilReleased = async (callId: CallId): Promise<void> => {
    await Promise.all([...(legs.get(callId) ?? [])]);
  };

  return {
    offerFor: (trunk) => sip.offerFor(trunk),
    keysFor: (trunk) => sip.keysFor(trunk),
    endOrphan: (orphan) => sip.endOrphan(orphan),
    place,
    untilReleased,
    watch: (watcher) => {
      watchers.push(watcher);
    },
    onTheWire: () => [...legs.keys()],
    idle: async (timeoutMs) => {
      await within(Promise.all([...legs.values()].flatMap((each) => [...each])), timeoutMs);
    },
  };
}

/** Says whether the INVITE of a ruled call may leave at the moment at which this resolves. */
export async function reachNow(
  {
    ruledAccountId,
    target,
    hoursEndAt,
  }: Pick<PlaceRequest, 'target' | 'hoursEndAt'> & { readonly ruledAccountId: string },
  { suppressions, clock }: { readonly suppressions: SuppressionCheck; readonly clock: Clock },
): Promise<Reachability | 'outside-hours'> {
  const reachability = await suppressions.reach(ruledAccountId, target);
  const isLate = hoursEndAt !== undefined && clock.now() >= hoursEndAt;
  return reachability === 'free' && isLate ? 'outside-hours' : reachability;
}

function refusedLeg(observer: LegObserver, clock: Clock): CallLeg {
  const nothing = (): void => undefined;
  queueMicrotask(() => {
    const reason = 'The node lost its lease';
    const failure = { at: clock.now(), kind: 'transport', reason, isUnsent: true } as const;
    observer.observe({ kind: 'failed', failure });
  });
  const released = Promise.resolve();
  const press = async () => false;
  return {
    cancel: nothing,
    acknowledge: nothing,
    hangUp: nothing,
    refer: nothing,
    press,
    released,
  };
}
