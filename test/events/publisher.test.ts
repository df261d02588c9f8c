import { once, setMaxListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import type { CallEvent } from '../../src/calls/contract/call-event.ts';
import { publishedEvent } from '../../src/calls/contract/published-event.ts';
import { eventsOfCall } from '../../src/events/call-stream.ts';
import type { EventConnection } from '../../src/events/connection.ts';
import { createPublisher, publishLateEvent } from '../../src/events/publisher.ts';
import { streamNames } from '../../src/events/subjects.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { eventBuilder } from '../support/call-events.ts';
import { startEventReader } from '../support/event-reader.ts';
import { eventually } from '../support/eventually.ts';
import { startTestNats } from '../support/nats.ts';
import { forSuite } from '../support/opened.ts';
import { ensureStreams } from '../support/streams.ts';

const retention = { eventDays: 1, contextHours: 1 };
const logger = silentLogger;

const nats = forSuite(startTestNats);

async function newStreams(): Promise<EventConnection> {
  const connection = await nats.connect();
  await ensureStreams(connection, retention);
  return connection;
}

/** Streams that refuse a message of more than 1,500 bytes. */
async function smallStreams(): Promise<EventConnection> {
  const connection = await newStreams();
  const name = streamNames(connection.prefix).calls;
  await connection.manager.streams.update(name, { max_msg_size: 1_500 });
  return connection;
}

function tooLarge(event: CallEvent): CallEvent {
  return { ...event, data: { ...event.data, gateway: 'g'.repeat(2_000) } } as CallEvent;
}

async function firstDeadLetter({ manager, prefix }: EventConnection): Promise<unknown> {
  return (await manager.streams.getMessage(streamNames(prefix).dead, { seq: 1 }))?.json();
}

function refused({ id, type, callId }: CallEvent): object {
  return { reason: 'refused by NATS', eventId: id, type, callId };
}

describe('publisher', () => {
  test('stores the events of one call in their order, without pauses in between', async () => {
    const connection = await newStreams();
    const publisher = createPublisher(connection, logger);
    const call = eventBuilder();
    const events = [call.dialing(), call.ringing(), call.answered(), call.completed()];

    await Promise.all(events.map((event) => publisher.publish([event])));

    expect(await eventsOfCall(connection, call.identity)).toEqual(events);
    await publisher.stop(1_000);
  });

  test('stores an event once if it is published again', async () => {
    const connection = await newStreams();
    const publisher = createPublisher(connection, logger);
    const event = eventBuilder().failed();

    await publisher.publish([event]);
    await publisher.publish([event]);

    const info = await connection.manager.streams.info(streamNames(connection.prefix).calls);
    expect(info.state.messages).toBe(1);
    await publisher.stop(1_000);
  });

  test('retries while the stream cannot store, and keeps the order', async () => {
    const connection = await nats.connect();
    const publisher = createPublisher(connection, logger);
    const call = eventBuilder();
    const events = [call.dialing(), call.failed()];

    const stored = Promise.all(events.map((event) => publisher.publish([event])));
    expect(publisher.waiting()).toBe(2);
    await ensureStreams(connection, retention);
    await stored;

    expect(await eventsOfCall(connection, call.identity)).toEqual(events);
    expect(publisher.waiting()).toBe(0);
    await publisher.stop(1_000);
  });

  test('rejects with a clear error when too many events wait', async () => {
    const connection = await nats.connect();
    const publisher = createPublisher(connection, logger, { maxWaiting: 1 });
    const call = eventBuilder();

    const first = publisher.publish([call.dialing()]);

    await expect(publisher.publish([call.ringing()])).rejects.toThrow('1 events wait');
    await publisher.stop(0);
    await expect(first).rejects.toThrow('stopped');
    await expect(publisher.publish([call.failed()])).rejects.toThrow('stopped');
  });

  test('publishes several events of a call, and none before an earlier one that waits', async () => {
    const connection = await nats.connect();
    const publisher = createPublisher(connection, logger);
    const call = eventBuilder();
    const events = [call.dialing(), call.ringing(), call.answered(), call.completed()];

    const stored = Promise.all([
      publisher.publish(events.slice(0, 3)),
      publisher.publish(events.slice(3)),
    ]);
    expect(publisher.waiting()).toBe(4);
    await ensureStreams(connection, retention);
    await stored;

    expect(await eventsOfCall(connection, call.identity)).toEqual(events);
    await publisher.stop(1_000);
  });

  test('writes the context before the event that changed it, and retries if that fails', async () => {
    const connection = await newStreams();
    const call = eventBuilder();
    const seen: string[] = [];
    const publisher = createPublisher(connection, logger, {
      writeContext: async (event) => {
        const before = await eventsOfCall(connection, call.identity);
        seen.push(`${event.type} after ${before.length}`);
        if (seen.length === 2) throw new Error('the bucket cannot be written');
      },
    });

    await publisher.publish([call.dialing(), call.answered()]);

    expect(seen).toEqual(['dialing after 0', 'answered after 1', 'answered after 1']);
    await publisher.stop(1_000);
  });

  test('publishes events of calls that are up before those of calls that have ended', async () => {
    const connection = await newStreams();
    const begun: string[] = [];
    const goOn = new AbortController();
    const publisher = createPublisher(connection, logger, {
      writeContext: async (event) => {
        begun.push(event.callId);
        if (begun.length <= 256) await once(goOn.signal, 'abort');
      },
    });
    setMaxListeners(0, goOn.signal);
    const filling = Array.from({ length: 256 }, () =>
      publisher.publish([eventBuilder().dialing()]),
    );
    const [over, up] = [eventBuilder(), eventBuilder()];

    const last = publisher.publish([over.dialing(), over.failed()]);
    const live = publisher.publish([up.dialing()]);
    goOn.abort();
    await Promise.all([...filling, last, live]);

    const afterThose = begun.slice(256);
    expect(afterThose).toEqual([up.identity.callId, over.identity.callId, over.identity.callId]);
    await publisher.stop(1_000);
  });

  test('skips an event that the stream refuses, and publishes a dead letter for it', async () => {
    const connection = await smallStreams();
    const publisher = createPublisher(connection, logger);
    const call = eventBuilder();
    const [large, end] = [tooLarge(call.dialing()), call.failed()];

    await publisher.publish([large, end]);

    expect(await eventsOfCall(connection, call.identity)).toEqual([end]);
    expect(await firstDeadLetter(connection)).toMatchObject(refused(large));
    await publisher.stop(1_000);
  });

  test('stops even if the events may not be published yet', async () => {
    const connection = await newStreams();
    const publisher = createPublisher(connection, logger, {
      untilAllowed: () => new Promise<void>(() => {}),
    });
    const event = expect(publisher.publish([eventBuilder().failed()])).rejects.toThrow('stopped');
    await publisher.stop(10);
    await event;
  });

  test('refuses an identifier that would break a subject', async () => {
    const connection = await newStreams();
    const publisher = createPublisher(connection, logger);

    await publisher.publish([{ ...eventBuilder().failed(), botId: 'a.*' }]);

    const { state } = await connection.manager.streams.info(streamNames(connection.prefix).calls);
    expect(state.messages).toBe(0);
    await publisher.stop(0);
  });
});

describe('an event after the end of its call', () => {
  test('is published', async () => {
    const connection = await newStreams();
    const call = eventBuilder();
    const event = call.failed();

    await publishLateEvent(connection, logger, event);

    expect(await eventsOfCall(connection, call.identity)).toEqual([event]);
  });

  test('becomes a dead letter if the stream refuses it', async () => {
    const connection = await smallStreams();
    const event = tooLarge(eventBuilder().dialing());

    await publishLateEvent(connection, logger, event);

    expect(await firstDeadLetter(connection)).toMatchObject(refused(event));
  });

  test('fails while the stream cannot store it', async () => {
    const connection = await nats.connect();

    await expect(publishLateEvent(connection, logger, eventBuilder().failed())).rejects.toThrow();
  });
});

describe('batch consumer', () => {
  test('delivers every event of many calls, each call in order', async () => {
    const connection = await newStreams();
    const publisher = createPublisher(connection, logger);
    const seen: CallEvent[] = [];
    const consumer = await startEventReader(connection, (events) => void seen.push(...events));

    const calls = Array.from({ length: 100 }, () => eventBuilder());
    const events = calls.flatMap((call) => [call.dialing(), call.answered(), call.completed()]);
    await Promise.all(events.map((event) => publisher.publish([event])));
    await eventually(() => seen.length >= events.length, 'all events arrive');

    expect(seen).toHaveLength(events.length);
    for (const call of calls) {
      const ofCall = seen.filter((event) => event.callId === call.identity.callId);
      expect(ofCall.map((event) => event.eventSequence)).toEqual([1, 2, 3]);
    }
    await consumer.stop();
    await publisher.stop(1_000);
  });

  test('continues where it stopped, and delivers no handled event twice', async () => {
    const connection = await newStreams();
    const publisher = createPublisher(connection, logger);
    const seen: string[] = [];
    const call = eventBuilder();
    const read = (events: readonly CallEvent[]) =>
      void seen.push(...events.map((event) => event.type));

    const first = await startEventReader(connection, read);
    await publisher.publish([call.dialing()]);
    await eventually(() => seen.length === 1, 'the first event arrives');
    await first.stop();
    await publisher.publish([call.failed()]);
    const second = await startEventReader(connection, read);
    await eventually(() => seen.length === 2, 'the second event arrives');

    expect(seen).toEqual(['dialing', 'failed']);
    await second.stop();
    await publisher.stop(1_000);
  });

  test('gives its messages back when it stops, and the next consumer takes them', async () => {
    const connection = await newStreams();
    const publisher = createPublisher(connection, logger);
    let release = () => {};
    const blocked = new Promise<void>((resolve) => {
      release = resolve;
    });
    const first: string[] = [];
    const second: string[] = [];
    const call = eventBuilder();

    const stopping = await startEventReader(
      connection,
      async (events) => {
        first.push(...events.map((event) => event.type));
        await blocked;
      },
      1,
    );
    for (const event of [call.dialing(), call.ringing(), call.failed()]) {
      await publisher.publish([event]);
    }
    await eventually(async () => {
      const info = await connection.manager.consumers.info(
        streamNames(connection.prefix).calls,
        `${connection.prefix}_reader`,
      );
      return first.length === 1 && info.num_ack_pending === 3;
    }, 'the first is being handled, the others are on their way');
    await connection.nats.flush();
    const stopped = stopping.stop();
    release();
    await stopped;
    const next = await startEventReader(
      connection,
      (events) => void second.push(...events.map((event) => event.type)),
    );
    // Mostly at once. nats-server 2.9 may still send one message to the old inbox; it comes again
    // after the acknowledge wait.
    await eventually(() => second.length === 2, 'the others arrive', 30_000);

    expect(first).toEqual(['dialing']);
    expect(second.sort()).toEqual(['failed', 'ringing']);
    await next.stop();
    await publisher.stop(1_000);
  });

  test('delivers an event again if its handler failed, and does not delay other calls', async () => {
    const connection = await newStreams();
    const publisher = createPublisher(connection, logger);
    const bad = eventBuilder();
    const good = eventBuilder();
    const handled: string[] = [];
    let failures = 0;
    const consumer = await startEventReader(connection, (events) => {
      if (failures < 3 && events.some((event) => event.callId === bad.identity.callId)) {
        failures += 1;
        throw new Error('the store refuses');
      }
      handled.push(...events.map((event) => event.id));
    });

    const events = [bad.dialing(), bad.failed(), good.dialing(), good.failed()];
    await Promise.all(events.map((event) => publisher.publish([event])));
    await eventually(() => new Set(handled).size === 4, 'every event is handled');

    expect(failures).toBe(3);
    await consumer.stop();
    await publisher.stop(1_000);
  });

  test('publishes a dead letter with the reason for a message that is not an event', async () => {
    const connection = await newStreams();
    const seen: CallEvent[] = [];
    const consumer = await startEventReader(connection, (events) => void seen.push(...events));
    const call = eventBuilder();
    const subject = `${connection.prefix}.call.acme.st-bot.${call.identity.callId}.failed`;

    const body = JSON.stringify(publishedEvent(call.failed()));
    await connection.jetstream.publish(subject, '{"type":"failed"}', { msgID: 'evt-1' });
    await connection.jetstream.publish(subject, 'not json', { msgID: 'evt-2' });
    await connection.jetstream.publish(subject, body);
    await connection.jetstream.publish(subject, body, { msgID: 'evt-3' });
    await eventually(() => seen.length === 1, 'the good event arrives');

    const dead = streamNames(connection.prefix).dead;
    await eventually(
      async () => (await connection.manager.streams.info(dead)).state.messages === 3,
      'dead letters',
    );
    const letter = await connection.manager.streams.getMessage(dead, { seq: 2 });
    expect(letter?.subject).toBe(`${connection.prefix}.dead.reader`);
    expect(letter?.json()).toMatchObject({ reason: 'not JSON', subject });
    await consumer.stop();
  });
});

describe('call stream', () => {
  test('returns every event of one call and of no other', async () => {
    const connection = await newStreams();
    const publisher = createPublisher(connection, logger);
    const call = eventBuilder();
    const other = eventBuilder();
    const events = [
      call.dialing(),
      call.answered(),
      call.amd('amd_machine_detected'),
      call.amd('amd_tone_detected'),
      call.amd('amd_stopped'),
      call.completed(),
    ];
    for (const event of events) {
      await publisher.publish([event]);
      await publisher.publish([other.ringing()]);
    }

    expect(await eventsOfCall(connection, call.identity)).toEqual(events);
    expect(await eventsOfCall(connection, eventBuilder().identity)).toEqual([]);
    await publisher.stop(1_000);
  });
});
