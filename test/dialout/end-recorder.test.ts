import { describe, expect, test } from 'vitest';
import { progressOfAccepted, queuedFact } from '../../src/calls/call-facts.ts';
import { endOfExpiry, endOfUnknown } from '../../src/calls/call-outcome.ts';
import { createEndRecorder } from '../../src/dialout/end-recorder.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { acceptedCall } from '../support/call-records.ts';
import { DialoutWorld, settled } from '../support/dialout-world.ts';

const at = new Date('2026-03-01T12:00:00.000Z');

function rig() {
  const world = new DialoutWorld();
  const { ledger, publisher } = world;
  const call = acceptedCall();
  const ends = createEndRecorder({ ledger, publisher, logger: silentLogger });
  return { world, call, ends, progress: progressOfAccepted(call) };
}

describe('the end of a call without a machine', () => {
  test('is in SQL with what the stream misses before any of it is published', async () => {
    const { world, call, ends, progress } = rig();
    world.isPublishing = false;
    const missing = [queuedFact(call)];

    expect(await ends.record(progress, endOfUnknown('restarted', at), missing)).toBe(true);
    expect(world.ends.get(call.callId)).toMatchObject({
      event: { type: 'failed', data: { outcome: 'unknown' } },
      unpublished: missing,
      published: false,
    });
    expect(world.stream).toEqual([]);
    world.resumePublishing();
    await settled();

    expect(world.stream.map(({ type }) => type)).toEqual(['queued', 'failed']);
    expect(world.ends.get(call.callId)?.published).toBe(true);
  });

  test('is one, however many claim it, and only the one that counts is published', async () => {
    const { world, ends, progress } = rig();
    const claims = await Promise.all([
      ends.record(progress, endOfUnknown('restarted', at)),
      ends.record(progress, endOfExpiry(at)),
    ]);
    await settled();

    expect(claims).toEqual([true, false]);
    expect(world.published.map(({ data }) => data)).toMatchObject([{ outcome: 'unknown' }]);
  });

  test('stays to be published where a fact before it was not stored', async () => {
    const { world, call, progress } = rig();
    const { ledger } = world;
    const publisher = {
      publish: async (event: { readonly type: string }) => {
        if (event.type === 'queued') throw new Error('full');
      },
    };
    const ends = createEndRecorder({ ledger, publisher, logger: silentLogger });
    await ends.record(progress, endOfUnknown('restarted', at), [queuedFact(call)]);
    await settled();

    expect(await ledger.endsToPublish('node-1', [], 10)).toHaveLength(1);
  });

  test('of a queued call is not recorded once somebody has claimed it', async () => {
    const { world, call, ends, progress } = rig();
    expect(await ends.recordQueued(progress, endOfExpiry(at))).toBe(false);
    world.queued.add(call.callId);
    expect(await ends.recordQueued(progress, endOfExpiry(at))).toBe(true);
    await settled();

    expect(world.published).toHaveLength(1);
  });
});
