import { describe, expect, test } from 'vitest';
import type { AcceptedCall } from '../../../src/calls/call-types.ts';
import type { Turn } from '../../../src/calls/dialout-ports.ts';
import { CallRegistry } from '../../../src/calls/life/call-registry.ts';
import { defaultCallLimits } from '../../../src/calls/life/call-setup.ts';
import type { LegObserver } from '../../../src/calls/ports.ts';
import { silentLogger } from '../../../src/lib/logger.ts';
import { acceptedCall, storedLeg } from '../../support/call-records.ts';
import { DialoutWorld, settled } from '../../support/dialout-world.ts';

const ownerId = 'node-1/a';

function rig(maxConcurrent = 10) {
  const world = new DialoutWorld();
  const log: string[] = [];
  const legs: LegObserver[] = [];
  const outcomes: unknown[] = [];
  const outbox = { ...world.process(ownerId).outbox };
  const registry = new CallRegistry(
    {
      outbox,
      clock: { now: () => new Date() },
      logger: silentLogger,
      media: {
        open: async () => ({
          offerSdp: 'offer',
          applyAnswer: () => 'applied',
          acceptsKeys: () => true,
          send: () => undefined,
          answerReoffer: () => undefined,
          offerAgain: () => '',
          openPartner: async () => undefined,
          close: () => log.push('media closed'),
        }),
      },
      sip: {
        offerFor: () => ({ codecs: ['PCMU'], encryption: 'rtp' }),
        keysFor: () => 'rtp',
        place: (_request, observer) => {
          legs.push(observer);
          return {
            cancel: () => log.push('cancel'),
            acknowledge: () => log.push('ack'),
            hangUp: () => log.push('bye'),
            refer: () => undefined,
            press: async () => true,
            released: Promise.resolve(),
          };
        },
        endOrphan: async () => 'gone',
      },
    },
    {
      limits: defaultCallLimits,
      maxConcurrent,
    },
  );
  registry.onEnded((_callId, { end }) => outcomes.push(end?.outcome));
  /** Starts calls as `CallTaking` does. */
  const start = (turn?: Turn): AcceptedCall => {
    const call = acceptedCall({ acceptedAt: new Date() });
    world.accept(call);
    world.take(call.callId, ownerId);
    registry.start(call, turn);
    return call;
  };
  return { world, outbox, registry, start, log, legs, outcomes };
}

describe('the calls of a process', () => {
  test('are found by id until they have ended', async () => {
    const { world, registry, start, outcomes } = rig();
    const call = start();
    expect(registry.has(call.callId)).toBe(true);
    expect(registry.end(call.callId, { by: 'application' })).toBe(true);
    await settled();

    expect(registry.end(call.callId, { by: 'application' })).toBe(false);
    expect([registry.size, outcomes]).toEqual([0, ['cancelled']]);
    expect(world.timelineOf(call.callId).map(({ type }) => type)).toEqual(['queued', 'failed']);
  });

  test('are each placed at their own turn', async () => {
    const { start, legs } = rig();
    const taken = { isWanted: (): boolean => false, come: (): void => undefined };
    start(async (isWanted) => {
      taken.isWanted = isWanted;
      await new Promise<void>((resolve) => {
        taken.come = resolve;
      });
    });
    start();
    await settled();
    expect([legs.length, taken.isWanted()]).toEqual([1, true]);

    taken.come();
    await settled();
    expect([legs.length, taken.isWanted()]).toEqual([2, false]);
  });

  test('are all ended at a shutdown, in any state', async () => {
    const { world, registry, start, legs } = rig();
    for (let count = 0; count < 3; count += 1) start();
    await settled();
    const [ringing, up] = legs;
    ringing?.observe({ kind: 'sent', gateway: 'gw', leg: storedLeg, at: new Date() });
    up?.observe({ kind: 'sent', gateway: 'gw', leg: storedLeg, at: new Date() });
    up?.observe({ kind: 'answered', sdp: 'sdp', leg: storedLeg, at: new Date() });
    await settled();
    registry.endAll({ by: 'gateway', reason: 'Gateway shut down' });
    await registry.empty(AbortSignal.timeout(5_000));

    const ends = world.rows().map(({ end }) => end);
    expect(ends.map((end) => end?.data.reason)).toEqual(Array(3).fill('Gateway shut down'));
    expect(ends.map((end) => end?.type ?? '').sort()).toEqual(['completed', 'failed', 'failed']);
  });

  test('end without further events if another process has ended them', async () => {
    const { world, registry, start, legs } = rig();
    const { callId } = start();
    await settled();
    legs[0]?.observe({ kind: 'sent', gateway: 'gw', leg: storedLeg, at: new Date() });
    world.takeOver('node-2/b');
    legs[0]?.observe({ kind: 'answered', sdp: 'sdp', leg: storedLeg, at: new Date() });
    await registry.empty(AbortSignal.timeout(5_000));

    expect(world.timelineOf(callId).map(({ type }) => type)).toEqual(['queued', 'dialing']);
    // The process that owns the call now hangs up.
    expect([...world.row(callId).legs.values()]).toEqual([storedLeg]);
  });

  test('leave no far end in a call and no port taken if their machine fails', async () => {
    const { outbox, registry, start, log, legs } = rig();
    start();
    await settled();
    legs[0]?.observe({ kind: 'sent', gateway: 'gw', leg: storedLeg, at: new Date() });
    outbox.append = () => {
      throw new Error('a defect');
    };
    legs[0]?.observe({ kind: 'provisional', status: 180, reason: 'Ringing', at: new Date() });
    await settled();

    expect(registry.size).toBe(0);
    expect(log).toEqual(['cancel', 'media closed']);
  });

  test('have a count of free places', () => {
    const { registry, start } = rig(2);
    const call = start();

    expect([registry.freePlaces, registry.ids()]).toEqual([1, [call.callId]]);
    registry.end(call.callId, { by: 'application' });
    expect(registry.has(call.callId)).toBe(true);
  });
});
