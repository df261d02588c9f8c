// Who dials, and who does not: the dialer over a queue in memory, with a registry whose calls never get further than the
// media port.

import { describe, expect, test } from 'vitest';
import { CallRegistry } from '../../src/calls/call-registry.ts';
import { defaultCallLimits } from '../../src/calls/call-setup.ts';
import type { AcceptedCall } from '../../src/calls/call-types.ts';
import type { CallId } from '../../src/calls/contract/identity.ts';
import { Dialer, type DialerPorts } from '../../src/dialout/dialer.ts';
import { createEndRecorder } from '../../src/dialout/end-recorder.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { acceptedCall } from '../support/call-records.ts';
import { DialoutWorld, settled } from '../support/dialout-world.ts';

const noon = new Date('2026-03-01T12:00:00.000Z');
const own = { restatesQueued: false } as const;
const queueTimeoutMs = 60_000;
const ago = (ms: number) => new Date(noon.getTime() - ms);

function rig(options: { readonly maxConcurrent?: number } = {}) {
  const world = new DialoutWorld();
  const calls = new Map<CallId, AcceptedCall>();
  const claims: CallId[] = [];
  const placed: CallId[] = [];
  const { publisher } = world;
  const clock = { now: () => noon };
  const logger = silentLogger;
  const ledger: DialerPorts['ledger'] = {
    ...world.ledger,
    recordInvite: async () => undefined,
    recordRinging: async () => undefined,
    recordAnswer: async () => undefined,
    claimForDialing: async (callId) => {
      claims.push(callId);
      return world.queued.delete(callId) ? calls.get(callId) : undefined;
    },
    waiting: async (before, limit) =>
      [...world.queued]
        .filter((callId) => (calls.get(callId)?.acceptedAt ?? before) < before)
        .slice(0, limit),
    expired: async (limit) =>
      [...world.queued]
        .filter((callId) => (calls.get(callId)?.acceptedAt ?? noon) <= ago(queueTimeoutMs))
        .slice(0, limit),
  };
  const woken: string[] = [];
  const lease = { isHeld: true };
  /** By the clock of a trunk. */
  const handedOut = new Set<CallId>();
  const pacers = {
    isPaced: (trunk: string | undefined): trunk is string => trunk === 'paced',
    wake: (trunk: string) => void woken.push(trunk),
    look: async () => ['paced'],
    has: (callId: CallId) => handedOut.has(callId),
  };

  const registry = new CallRegistry(
    {
      ledger,
      publisher,
      clock,
      logger,
      media: {
        open: (callId) => {
          placed.push(callId);
          return new Promise(() => {});
        },
      },
      sip: {
        codecsFor: () => ['PCMU'],
        place: () => {
          throw new Error('no media, no INVITE');
        },
        endOrphan: async () => 'gone',
      },
    },
    {
      limits: defaultCallLimits,
      maxConcurrent: options.maxConcurrent ?? 10,
      onEnded: () => undefined,
    },
  );
  const ends = createEndRecorder({ ledger, publisher, logger });
  const dialer = new Dialer(
    { ledger, registry, pacers, ends, clock, logger, mayPlace: () => lease.isHeld },
    { ownerId: 'node-1/new' },
  );
  const accept = (acceptedAt: Date): CallId => {
    const base = acceptedCall({ acceptedAt });
    const call = { ...base, request: { ...base.request, queueTimeoutMs } };
    calls.set(call.callId, call);
    world.queued.add(call.callId);
    return call.callId;
  };
  return {
    world,
    registry,
    dialer,
    pacers,
    handedOut,
    lease,
    woken,
    claims,
    placed,
    accept,
    async [Symbol.asyncDispose]() {
      dialer.stop();
      registry.endAll({ by: 'application' });
      await registry.empty(AbortSignal.timeout(5_000));
    },
  };
}

describe('the dialer', () => {
  test('starts a call once, however often it is delivered and swept', async () => {
    await using r = rig();
    const callId = r.accept(ago(10_000));
    await Promise.all([r.dialer.dial(callId, own), r.dialer.dial(callId, own), r.dialer.sweep()]);

    expect(r.placed).toEqual([callId]);
    expect(r.registry.has(callId)).toBe(true);
  });

  test('says `queued` again for a call that another process accepted, and only then', async () => {
    await using r = rig();
    const [ours, theirs] = [r.accept(ago(0)), r.accept(ago(0))];
    await r.dialer.dial(ours, own);
    await r.dialer.dial(theirs, { restatesQueued: true });

    expect(r.world.published.map(({ type, callId }) => [type, callId])).toEqual([
      ['queued', theirs],
    ]);
  });

  test('leaves a call to the clock of its trunk, where that has limits', async () => {
    await using r = rig();
    await r.dialer.dial(r.accept(ago(0)), { trunk: 'paced', restatesQueued: false });

    expect(r.woken).toEqual(['paced']);
    expect(r.claims).toEqual([]);
  });

  test('leaves alone what a trunk has handed out to this process already', async () => {
    await using r = rig();
    const callId = r.accept(ago(0));
    r.handedOut.add(callId);
    await r.dialer.dial(callId, own);

    expect(r.claims).toEqual([]);
  });

  test('waits for room, and claims nothing before there is some', async () => {
    await using r = rig({ maxConcurrent: 1 });
    const [first, second] = [r.accept(ago(0)), r.accept(ago(0))];
    await r.dialer.dial(first, own);
    const waiting = r.dialer.dial(second, own);
    await settled();
    expect(r.claims).toEqual([first]);

    r.registry.end(first, { by: 'application' });
    await waiting;
    expect(r.placed).toEqual([first, second]);
  });

  test('may keep many waiting without a warning of Node', async () => {
    const warnings: Error[] = [];
    const onWarning = (warning: Error) => void warnings.push(warning);
    process.on('warning', onWarning);
    await using r = rig({ maxConcurrent: 1 });
    await r.dialer.dial(r.accept(ago(0)), own);
    const waiting = Array.from({ length: 20 }, () => r.dialer.dial(r.accept(ago(0)), own));
    await settled();
    process.off('warning', onWarning);
    r.dialer.stop();

    expect((await Promise.allSettled(waiting)).every(({ status }) => status === 'rejected')).toBe(
      true,
    );
    expect(warnings).toEqual([]);
  });

  test('ends a call that waited too long instead of dialling it late', async () => {
    await using r = rig();
    const callId = r.accept(ago(60_001));
    await r.dialer.dial(callId, own);
    await settled();

    expect(r.placed).toEqual([]);
    expect(r.world.stream.map(({ type, eventSequence }) => [type, eventSequence])).toEqual([
      ['queued', 1],
      ['failed', 2],
    ]);
    expect(r.world.ends.get(callId)?.event.data).toMatchObject({ outcome: 'expired' });
  });

  test('claims nothing more once it is stopped', async () => {
    await using r = rig();
    const callId = r.accept(ago(10_000));
    r.dialer.stop();

    await expect(r.dialer.dial(callId, own)).rejects.toThrow('stopping');
    await r.dialer.sweep();
    expect(r.claims).toEqual([]);
  });

  test('leaves calls to others while no INVITE of its own may leave', async () => {
    await using r = rig();
    const [waiting, expired] = [r.accept(ago(10_000)), r.accept(ago(60_001))];
    r.lease.isHeld = false;

    await expect(r.dialer.dial(waiting, own)).rejects.toThrow('no INVITE may leave');
    await r.dialer.sweep();
    expect(r.claims).toEqual([]);

    r.lease.isHeld = true;
    await r.dialer.sweep();
    expect(r.claims).toEqual([expired, waiting]);
    expect(r.placed).toEqual([waiting]);
  });

  test('a claim that fails is told to the queue, which brings the call again', async () => {
    await using r = rig();
    const broken = rig();
    await using _closing = broken;
    const callId = r.accept(ago(0));
    const dialer = new Dialer(
      {
        ledger: {
          ...broken.world.ledger,
          claimForDialing: () => Promise.reject(new Error('SQL is away')),
        } as never,
        registry: r.registry,
        pacers: r.pacers,
        ends: { record: async () => true, recordQueued: async () => true },
        mayPlace: () => true,
        clock: { now: () => noon },
        logger: silentLogger,
      },
      { ownerId: 'node-1/new' },
    );

    await expect(dialer.dial(callId, own)).rejects.toThrow('SQL is away');
    expect(r.registry.has(callId)).toBe(false);
  });
});

describe('the sweep', () => {
  test('dials what nobody woke a worker for, and says `queued` again in case that was lost too', async () => {
    await using r = rig();
    const [old, young] = [r.accept(ago(5_001)), r.accept(ago(4_000))];
    await r.dialer.sweep();

    expect(r.placed).toEqual([old]);
    expect(r.registry.has(young)).toBe(false);
    expect(r.world.published.map(({ type, callId }) => [type, callId])).toEqual([['queued', old]]);
  });

  test('ends what has expired, though there is no room for a call', async () => {
    await using r = rig({ maxConcurrent: 1 });
    await r.dialer.dial(r.accept(ago(0)), own);
    const [expired, waiting] = [r.accept(ago(60_001)), r.accept(ago(10_000))];
    await r.dialer.sweep();
    await settled();

    expect([...r.world.ends.keys()]).toEqual([expired]);
    expect(r.world.queued.has(waiting)).toBe(true);
  });
});
