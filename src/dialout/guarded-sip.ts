// The SIP port as calls of this process get it: no INVITE leaves without the lease, not even a call's second one, because
// a process that was paused may come to itself when another one has long ended the call.
// And it says when a call's legs are off the wire.

import type { CallId } from '../calls/contract/identity.ts';
import type { CallLeg, Clock, LegObserver, PlaceRequest, SipPort } from '../calls/ports.ts';
import { inBackground } from '../lib/in-background.ts';
import type { Logger } from '../lib/logger.ts';
import { within } from '../lib/within.ts';

export type GuardedSip = SipPort & {
  /** Resolves when the call's legs are off the wire; at once where it has none. */
  untilReleased(callId: CallId): Promise<void>;
  /** Calls with a leg on the wire. */
  onTheWire(): readonly CallId[];
  /** Waits until no leg of this process is on the wire, at most this long. */
  idle(timeoutMs: number): Promise<void>;
  /** Tells of every leg from now on. */
  watch(watcher: LegWatcher): void;
};

export type LegWatcher = {
  /** By the leg's id, which is the call's for its first. */
  onPlaced(legId: string): void;
  onReleased(legId: string): void;
  /** With its last leg. */
  onOffTheWire(callId: CallId): void;
};

export function guardSip(
  sip: SipPort,
  options: { readonly mayPlace: () => boolean; readonly clock: Clock; readonly logger: Logger },
): GuardedSip {
  /** By call: its first leg, and a second one or what is left of former ones. */
  const legs = new Map<CallId, Set<Promise<void>>>();
  const watchers: LegWatcher[] = [];

  function place(request: PlaceRequest, observer: LegObserver): CallLeg {
    const { callId, legId = callId } = request;
    if (!options.mayPlace()) {
      for (const watcher of watchers) watcher.onReleased(legId);
      return refused(observer, options.clock);
    }
    const leg = sip.place({ ...request, mayInvite: options.mayPlace }, observer);
    for (const watcher of watchers) watcher.onPlaced(legId);
    const ofCall = legs.get(callId) ?? new Set();
    ofCall.add(leg.released);
    legs.set(callId, ofCall);
    const released = leg.released.then(() => {
      ofCall.delete(leg.released);
      for (const watcher of watchers) watcher.onReleased(legId);
      if (ofCall.size > 0) return;
      legs.delete(callId);
      for (const watcher of watchers) watcher.onOffTheWire(callId);
    });
    inBackground(released, options.logger, 'telling that a leg is off the wire');
    return leg;
  }

  const untilReleased = async (callId: CallId): Promise<void> => {
    await Promise.all([...(legs.get(callId) ?? [])]);
  };

  return {
    codecsFor: (trunk) => sip.codecsFor(trunk),
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

function refused(observer: LegObserver, clock: Clock): CallLeg {
  const nothing = (): void => undefined;
  queueMicrotask(() => {
    const reason = 'The node lost its lease';
    observer.observe({ kind: 'failed', failure: { at: clock.now(), kind: 'transport', reason } });
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
