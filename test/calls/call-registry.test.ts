import { describe, expect, test } from 'vitest';
import { CallRegistry } from '../../src/calls/call-registry.ts';
import { defaultCallLimits } from '../../src/calls/call-setup.ts';
import type { LegObserver } from '../../src/calls/ports.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { acceptedCall, storedLeg } from '../support/call-records.ts';
import { DialoutWorld, settled } from '../support/dialout-world.ts';

function rig(maxConcurrent = 10) {
  const world = new DialoutWorld();
  const log: string[] = [];
  const legs: LegObserver[] = [];
  const outcomes: unknown[] = [];
  const publisher = { ...world.publisher };
  const registry = new CallRegistry(
    {
      publisher,
      clock: { now: () => new Date() },
      logger: silentLogger,
      ledger: {
        ...world.ledger,
        recordInvite: async () => undefined,
        recordRinging: async () => undefined,
        recordAnswer: async () => undefined,
      },
      media: {
        open: async () => ({
          offerSdp: 'offer',
          applyAnswer: () => true,
          startDetection: () => undefined,
          stopDetection: () => undefined,
          prepareStream: () => undefined,
          answerStream: () => undefined,
          stopStream: () => undefined,
          tellDigit: () => undefined,
          answerReoffer: () => undefined,
          close: () => log.push('media closed'),
        }),
      },
      sip: {
        codecsFor: () => ['PCMU'],
        place: (_request, observer) => {
          legs.push(observer);
          return {
            cancel: () => log.push('cancel'),
            acknowledge: () => log.push('ack'),
            hangUp: () => log.push('bye'),
            released: Promise.resolve(),
          };
        },
        endOrphan: async () => 'gone',
      },
    },
    {
      limits: defaultCallLimits,
      maxConcurrent,
      onEnded: (_callId, end) => outcomes.push(end?.outcome),
    },
  );
  return { world, publisher, registry, log, legs, outcomes };
}

describe('the calls of a process', () => {
  test('are found until they have ended', async () => {
    const { world, registry, outcomes } = rig();
    const call = acceptedCall({ acceptedAt: new Date() });
    registry.start(call);
    expect(registry.has(call.callId)).toBe(true);
    expect(registry.end(call.callId, { by: 'application' })).toBe(true);
    await settled();

    expect(registry.end(call.callId, { by: 'application' })).toBe(false);
    expect([registry.size, outcomes]).toEqual([0, ['cancelled']]);
    expect(world.stream.map(({ type }) => type)).toEqual(['failed']);
  });

  test('are all ended at a shutdown, in whatever state they are', async () => {
    const { world, registry, legs } = rig();
    for (let count = 0; count < 3; count += 1)
      registry.start(acceptedCall({ acceptedAt: new Date() }));
    await settled();
    const [ringing, up] = legs;
    ringing?.observe({ kind: 'sent', gateway: 'gw', leg: storedLeg, at: new Date() });
    up?.observe({ kind: 'sent', gateway: 'gw', leg: storedLeg, at: new Date() });
    up?.observe({ kind: 'answered', sdp: 'sdp', leg: storedLeg, at: new Date() });
    await settled();
    registry.endAll({ by: 'gateway', reason: 'Gateway shut down' });
    await registry.empty(AbortSignal.timeout(5_000));

    const ends = [...world.ends.values()].map(({ event }) => event);
    expect(ends.map(({ data }) => data.reason)).toEqual(Array(3).fill('Gateway shut down'));
    expect(ends.map(({ type }) => type).sort()).toEqual(['completed', 'failed', 'failed']);
  });

  test('`queued`, where it may have been lost, is stated before anything else', async () => {
    const { world, registry, legs } = rig();
    const call = acceptedCall({ acceptedAt: new Date() });
    registry.start(call, { restatesQueued: true });
    await settled();
    legs[0]?.observe({ kind: 'sent', gateway: 'gw', leg: storedLeg, at: new Date() });
    await settled();

    expect(world.stream.map(({ type }) => type)).toEqual(['queued', 'dialing']);
    registry.endAll({ by: 'application' });
  });

  test('a machine that fails leaves nobody in a call and no port taken', async () => {
    const { publisher, registry, log, legs } = rig();
    registry.start(acceptedCall({ acceptedAt: new Date() }));
    await settled();
    legs[0]?.observe({ kind: 'sent', gateway: 'gw', leg: storedLeg, at: new Date() });
    publisher.publish = () => {
      throw new Error('a defect');
    };
    legs[0]?.observe({ kind: 'provisional', status: 180, reason: 'Ringing', at: new Date() });
    await settled();

    expect(registry.size).toBe(0);
    expect(log).toEqual(['cancel', 'media closed']);
  });

  test('says for how many calls more there is room', () => {
    const { registry } = rig(2);
    const call = acceptedCall({ acceptedAt: new Date() });
    registry.start(call);

    expect([registry.freePlaces, registry.ids()]).toEqual([1, [call.callId]]);
    registry.end(call.callId, { by: 'application' });
    expect(registry.has(call.callId)).toBe(true);
  });
});
