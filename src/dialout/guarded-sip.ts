// The SIP port as calls of this process get it: no INVITE leaves without the lease, not even a call's second one, because
// a process that was paused may come to itself when another one has long ended the call.
// And it says when a call's leg is off the wire.

import type { CallId } from '../calls/contract/identity.ts';
import type { CallLeg, Clock, LegObserver, PlaceRequest, SipPort } from '../calls/ports.ts';
import { atMost } from '../lib/at-most.ts';

export type GuardedSip = SipPort & {
  /** Resolves when the call's leg is off the wire; at once where it has none. */
  untilReleased(callId: CallId): Promise<void>;
  /** Calls with a leg on the wire. */
  onTheWire(): readonly CallId[];
  /** Waits until no leg of this process is on the wire, at most this long. */
  idle(timeoutMs: number): Promise<void>;
};

export function guardSip(
  sip: SipPort,
  options: {
    readonly mayPlace: () => boolean;
    readonly onPlaced: (callId: CallId) => void;
    readonly onReleased: (callId: CallId) => void;
    readonly clock: Clock;
  },
): GuardedSip {
  const legs = new Map<CallId, Promise<void>>();

  function place(request: PlaceRequest, observer: LegObserver): CallLeg {
    if (!options.mayPlace()) {
      options.onReleased(request.callId);
      return refused(observer, options.clock);
    }
    const leg = sip.place({ ...request, mayInvite: options.mayPlace }, observer);
    options.onPlaced(request.callId);
    legs.set(request.callId, leg.released);
    void leg.released.then(() => {
      legs.delete(request.callId);
      options.onReleased(request.callId);
    });
    return leg;
  }

  return {
    codecsFor: (trunk) => sip.codecsFor(trunk),
    endOrphan: (orphan) => sip.endOrphan(orphan),
    place,
    untilReleased: (callId) => legs.get(callId) ?? Promise.resolve(),
    onTheWire: () => [...legs.keys()],
    idle: (timeoutMs) => atMost(Promise.all(legs.values()), timeoutMs),
  };
}

function refused(observer: LegObserver, clock: Clock): CallLeg {
  const nothing = (): void => undefined;
  queueMicrotask(() => {
    const reason = 'The node lost its lease';
    observer.observe({ kind: 'failed', failure: { at: clock.now(), kind: 'transport', reason } });
  });
  return { cancel: nothing, acknowledge: nothing, hangUp: nothing, released: Promise.resolve() };
}
