import { describe, expect, test } from 'vitest';
import type { CallId } from '../../src/calls/contract/identity.ts';
import type { LegFailure, LegObserver, PlaceRequest, SipPort } from '../../src/calls/ports.ts';
import { guardSip } from '../../src/dialout/guarded-sip.ts';
import { silentLogger } from '../../src/lib/logger.ts';

const request = { callId: 'call-1' as CallId } as PlaceRequest;

function rig() {
  const placed: CallId[] = [];
  const requests: PlaceRequest[] = [];
  const placedCalls: string[] = [];
  const releasedCalls: string[] = [];
  const failures: LegFailure[] = [];
  const line = {
    mayPlace: true,
    isBroken: false,
    release: (): void => undefined,
  };
  const released = new Promise<void>((resolve) => {
    line.release = resolve;
  });
  const sip = {
    place: (given: PlaceRequest) => {
      if (line.isBroken) throw new Error('a defect');
      placed.push(given.callId);
      requests.push(given);
      return { released };
    },
  } as unknown as SipPort;
  const guarded = guardSip(sip, {
    mayPlace: () => line.mayPlace,
    suppressions: {
      reach: async (accountId) => (accountId === 'strict' ? 'suppressed' : 'free'),
    },
    clock: { now: () => new Date(0) },
    logger: silentLogger,
  });
  guarded.watch({
    onPlaced: (legId) => placedCalls.push(legId),
    onReleased: (legId) => releasedCalls.push(legId),
    onOffTheWire: (callId) => releasedCalls.push(`${callId} whole`),
  });
  const observer: LegObserver = {
    observe: (event) => {
      if (event.kind === 'failed') failures.push(event.failure);
    },
  };
  return { guarded, observer, line, placed, requests, placedCalls, releasedCalls, failures };
}

describe('the SIP port of a node', () => {
  test('reports when a leg is off the wire', async () => {
    const { guarded, observer, line, releasedCalls } = rig();
    guarded.place(request, observer);
    expect(releasedCalls).toEqual([]);

    const idle = guarded.idle(10_000);
    line.release();
    await idle;
    expect(releasedCalls).toEqual(['call-1', 'call-1 whole']);
  });

  test('asks before each INVITE of an account with rules whether the target is suppressed', async () => {
    const { guarded, observer, requests } = rig();
    guarded.place({ ...request, ruledAccountId: 'strict' }, observer);
    guarded.place({ ...request, ruledAccountId: 'lenient' }, observer);
    guarded.place(request, observer);

    const answers = requests.map(({ mayReach }) => mayReach?.());
    expect(answers[2]).toBeUndefined();
    expect([await answers[0], await answers[1]]).toEqual(['suppressed', 'free']);
  });

  test('says before each INVITE whether the hours of its number have ended', async () => {
    const { guarded, observer, requests } = rig();
    const hours = [{ hoursEndAt: new Date(0) }, { hoursEndAt: new Date(1) }, {}];
    for (const more of hours) {
      guarded.place({ ...request, ...more, ruledAccountId: 'lenient' }, observer);
    }
    guarded.place({ ...request, ruledAccountId: 'strict', hoursEndAt: new Date(0) }, observer);

    const answers = await Promise.all(requests.map(async ({ mayReach }) => await mayReach?.()));
    expect(answers).toEqual(['outside-hours', 'free', 'free', 'suppressed']);
  });

  test('does not wait for the release of a leg that was never placed', () => {
    const { guarded, observer, line, placedCalls } = rig();
    line.isBroken = true;

    expect(() => guarded.place(request, observer)).toThrow('a defect');
    expect(placedCalls).toEqual([]);
  });

  test('lets no further INVITE of a call leave once the lease is lost', () => {
    const { guarded, observer, line, requests } = rig();
    guarded.place(request, observer);

    expect(requests[0]?.mayInvite?.()).toBe(true);
    line.mayPlace = false;
    expect(requests[0]?.mayInvite?.()).toBe(false);
  });

  test('places nothing without the lease, and fails the call', async () => {
    const { guarded, observer, line, placed, releasedCalls, failures } = rig();
    line.mayPlace = false;
    const leg = guarded.place(request, observer);
    leg.cancel('whatever');
    await leg.released;

    expect(placed).toEqual([]);
    expect(releasedCalls).toEqual(['call-1']);
    expect(failures).toEqual([
      { at: new Date(0), kind: 'transport', reason: 'The node lost its lease', isUnsent: true },
    ]);
  });
});
