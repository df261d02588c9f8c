// The relay passes a call's stored events on to a publisher, which is scripted here.

import { describe, expect, test } from 'vitest';
import type { CallEvent } from '../../src/calls/contract/call-event.ts';
import type { CallId } from '../../src/calls/contract/identity.ts';
import { EventRelay } from '../../src/events/relay.ts';
import { silentLogger as logger } from '../../src/lib/logger.ts';
import { eventBuilder } from '../support/call-events.ts';

/** A relay whose publisher keeps the events until `publishAll` or `refuseAll` is called. */
function startRelay() {
  const published: number[] = [];
  const settled: CallId[] = [];
  const waiting: {
    readonly events: readonly CallEvent[];
    readonly done: (error?: Error) => void;
  }[] = [];
  const relay = new EventRelay({
    publisher: {
      holds: () => waiting.length > 0,
      publish: (events) =>
        new Promise((resolve, reject) => {
          waiting.push({
            events,
            done: (error) => (error === undefined ? resolve() : reject(error)),
          });
        }),
    },
    untilReleased: async () => undefined,
    settle: (callId) => settled.push(callId),
    markQueuedPublished: () => undefined,
    logger,
  });
  const finish = async (error?: Error): Promise<void> => {
    for (const { events, done } of waiting.splice(0)) {
      if (error === undefined) published.push(...events.map((event) => event.eventSequence));
      done(error);
    }
    await new Promise((resolve) => setImmediate(resolve));
  };
  return {
    ...{ relay, published, settled },
    publishAll: () => finish(),
    refuseAll: () => finish(new Error('the publisher is stopped')),
  };
}

describe('the events of a call', () => {
  test('are published in order, and the call is settled after its end', async () => {
    const { relay, published, settled, publishAll } = startRelay();
    const build = eventBuilder();
    const [queued, dialing] = [build.queued(), build.dialing()];

    relay.send([queued]);
    relay.send([dialing]);
    await publishAll();

    const callId = queued.callId as CallId;
    expect(relay.publishedThrough(callId)).toBe(2);
    relay.send([build.failed()]);
    await publishAll();

    expect(published).toEqual([1, 2, 3]);
    expect(settled).toEqual([callId]);
  });

  test('are left to recovery after a gap, so that the gap is not hidden', async () => {
    const { relay, published, settled, publishAll } = startRelay();
    const build = eventBuilder();
    const queued = build.queued();
    relay.send([queued]);
    await publishAll();
    build.dialing();

    relay.send([build.ringing()]);
    await publishAll();
    relay.send([build.failed()]);
    await publishAll();

    expect(published).toEqual([1]);
    expect(settled).toEqual([]);
    expect(relay.publishedThrough(queued.callId as CallId)).toBeUndefined();
  });

  test('are left to recovery if the publisher refuses them', async () => {
    const { relay, published, settled, publishAll, refuseAll } = startRelay();
    const build = eventBuilder();
    relay.send([build.queued()]);
    await publishAll();
    relay.send([build.dialing()]);
    await refuseAll();

    relay.send([build.ringing(), build.failed()]);
    await publishAll();

    expect(published).toEqual([1]);
    expect(settled).toEqual([]);
  });

  test('can be published again, and go on after that', async () => {
    const { relay, published, publishAll } = startRelay();
    const build = eventBuilder();
    const queued = build.queued();
    relay.send([queued, build.dialing()]);
    relay.send([queued]);
    relay.send([build.ringing()]);
    await publishAll();

    expect(published).toEqual([1, 2, 1, 3]);
    expect(relay.publishedThrough(queued.callId as CallId)).toBe(3);
  });

  test('are passed on from any number if the process does not know the call', async () => {
    const { relay, published, publishAll } = startRelay();
    const build = eventBuilder();
    build.queued();
    relay.send([build.dialing()]);
    await publishAll();

    expect(published).toEqual([2]);
  });
});
