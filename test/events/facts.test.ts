import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { CallEvent } from '../../src/calls/contract/call-event.ts';
import { factsOfCall } from '../../src/events/call-stream.ts';
import type { EventConnection } from '../../src/events/connection.ts';
import { type FactConsumer, startFactConsumer } from '../../src/events/fact-consumer.ts';
import { createPublisher } from '../../src/events/publisher.ts';
import { ensureStreams } from '../../src/events/streams.ts';
import { streamNames } from '../../src/events/subjects.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { factTeller } from '../support/call-facts.ts';
import { eventually } from '../support/eventually.ts';
import { startTestNats, type TestNats } from '../support/nats.ts';

const retention = { eventDays: 1, contextHours: 1 };
const logger = silentLogger;

let nats: TestNats;
beforeAll(async () => {
  nats = await startTestNats();
});
afterAll(async () => {
  await nats.stop();
});

async function newStreams(): Promise<EventConnection> {
  const connection = await nats.connect();
  await ensureStreams(connection, retention);
  return connection;
}

async function collect(
  connection: EventConnection,
  handle: (facts: readonly CallEvent[]) => Promise<void> | void,
  maxBatch = 100,
): Promise<FactConsumer> {
  return await startFactConsumer(connection, {
    name: 'reader',
    maxBatch,
    logger,
    handle: async (facts) => handle(facts),
  });
}

describe('publisher', () => {
  test('stores the facts of one call in the order they were stated, without waiting in between', async () => {
    const connection = await newStreams();
    const publisher = createPublisher(connection, logger);
    const call = factTeller();
    const facts = [call.dialing(), call.ringing(), call.answered(), call.completed()];

    await Promise.all(facts.map((fact) => publisher.publish(fact)));

    expect(await factsOfCall(connection, call.identity)).toEqual(facts);
    await publisher.stop(1_000);
  });

  test('stores a fact once that is published again', async () => {
    const connection = await newStreams();
    const publisher = createPublisher(connection, logger);
    const fact = factTeller().failed();

    await publisher.publish(fact);
    await publisher.publish(fact);

    const info = await connection.manager.streams.info(streamNames(connection.prefix).calls);
    expect(info.state.messages).toBe(1);
    await publisher.stop(1_000);
  });

  test('keeps trying while the stream cannot store, and keeps the order', async () => {
    const connection = await nats.connect();
    const publisher = createPublisher(connection, logger);
    const call = factTeller();
    const facts = [call.dialing(), call.failed()];

    const stored = Promise.all(facts.map((fact) => publisher.publish(fact)));
    expect(publisher.waiting()).toBe(2);
    await ensureStreams(connection, retention);
    await stored;

    expect(await factsOfCall(connection, call.identity)).toEqual(facts);
    expect(publisher.waiting()).toBe(0);
    await publisher.stop(1_000);
  });

  test('rejects with a clear error when too many facts wait', async () => {
    const connection = await nats.connect();
    const publisher = createPublisher(connection, logger, { maxWaiting: 1 });
    const call = factTeller();

    const first = publisher.publish(call.dialing());

    await expect(publisher.publish(call.ringing())).rejects.toThrow('1 events wait');
    await publisher.stop(0);
    await expect(first).rejects.toThrow('stopped');
    await expect(publisher.publish(call.failed())).rejects.toThrow('stopped');
  });

  test('ends though the facts may not leave yet, and nobody says when', async () => {
    const connection = await newStreams();
    const publisher = createPublisher(connection, logger, {
      untilAllowed: () => new Promise<void>(() => {}),
    });
    const fact = expect(publisher.publish(factTeller().failed())).rejects.toThrow('stopped');
    await publisher.stop(10);
    await fact;
  });

  test('refuses identifiers that would break a subject', async () => {
    const connection = await newStreams();
    const publisher = createPublisher(connection, logger);
    const fact = { ...factTeller().failed(), botId: 'a.*' };

    await expect(publisher.publish(fact)).rejects.toThrow('not a subject token');
    await publisher.stop(0);
  });
});

describe('fact consumer', () => {
  test('hands over every fact of many calls, each call in order', async () => {
    const connection = await newStreams();
    const publisher = createPublisher(connection, logger);
    const seen: CallEvent[] = [];
    const consumer = await collect(connection, (facts) => void seen.push(...facts));

    const calls = Array.from({ length: 100 }, () => factTeller());
    const facts = calls.flatMap((call) => [call.dialing(), call.answered(), call.completed()]);
    await Promise.all(facts.map((fact) => publisher.publish(fact)));
    await eventually(() => seen.length >= facts.length, 'all facts arrive');

    expect(seen).toHaveLength(facts.length);
    for (const call of calls) {
      const ofCall = seen.filter((fact) => fact.callId === call.identity.callId);
      expect(ofCall.map((fact) => fact.eventSequence)).toEqual([1, 2, 3]);
    }
    await consumer.stop();
    await publisher.stop(1_000);
  });

  test('goes on where it stopped, and takes no fact twice that was handled', async () => {
    const connection = await newStreams();
    const publisher = createPublisher(connection, logger);
    const seen: string[] = [];
    const call = factTeller();
    const read = (facts: readonly CallEvent[]) => void seen.push(...facts.map((fact) => fact.type));

    const first = await collect(connection, read);
    await publisher.publish(call.dialing());
    await eventually(() => seen.length === 1, 'the first fact arrives');
    await first.stop();
    await publisher.publish(call.failed());
    const second = await collect(connection, read);
    await eventually(() => seen.length === 2, 'the second fact arrives');

    expect(seen).toEqual(['dialing', 'failed']);
    await second.stop();
    await publisher.stop(1_000);
  });

  test('gives back what it had taken when it stops, and the next one takes it', async () => {
    const connection = await newStreams();
    const publisher = createPublisher(connection, logger);
    let release = () => {};
    const blocked = new Promise<void>((resolve) => {
      release = resolve;
    });
    const first: string[] = [];
    const second: string[] = [];
    const call = factTeller();

    const stopping = await collect(
      connection,
      async (facts) => {
        first.push(...facts.map((fact) => fact.type));
        await blocked;
      },
      1,
    );
    for (const fact of [call.dialing(), call.ringing(), call.failed()]) {
      await publisher.publish(fact);
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
    const next = await collect(
      connection,
      (facts) => void second.push(...facts.map((fact) => fact.type)),
    );
    // Mostly at once; nats-server 2.9 may still send one to the old inbox, and that comes after the acknowledge wait.
    await eventually(() => second.length === 2, 'the others arrive', 20_000);

    expect(first).toEqual(['dialing']);
    expect(second.sort()).toEqual(['failed', 'ringing']);
    await next.stop();
    await publisher.stop(1_000);
  });

  test('brings a fact again whose handler failed, and does not hold the other calls up', async () => {
    const connection = await newStreams();
    const publisher = createPublisher(connection, logger);
    const bad = factTeller();
    const good = factTeller();
    const handled: string[] = [];
    let failures = 0;
    const consumer = await collect(connection, (facts) => {
      if (failures < 3 && facts.some((fact) => fact.callId === bad.identity.callId)) {
        failures += 1;
        throw new Error('the store refuses');
      }
      handled.push(...facts.map((fact) => fact.id));
    });

    const facts = [bad.dialing(), bad.failed(), good.dialing(), good.failed()];
    await Promise.all(facts.map((fact) => publisher.publish(fact)));
    await eventually(() => new Set(handled).size === 4, 'every fact is handled');

    expect(failures).toBe(3);
    await consumer.stop();
    await publisher.stop(1_000);
  });

  test('puts what is no fact on the dead-letter subject with the reason', async () => {
    const connection = await newStreams();
    const seen: CallEvent[] = [];
    const consumer = await collect(connection, (facts) => void seen.push(...facts));
    const call = factTeller();
    const subject = `${connection.prefix}.call.acme.st-bot.${call.identity.callId}.failed`;

    await connection.jetstream.publish(subject, '{"id":"x","type":"failed"}');
    await connection.jetstream.publish(subject, 'not json');
    // A database would refuse it each time that it comes again.
    await connection.jetstream.publish(
      subject,
      JSON.stringify({ ...call.failed(), id: 'evt-\u0000' }),
    );
    await connection.jetstream.publish(subject, JSON.stringify(call.failed()));
    await eventually(() => seen.length === 1, 'the good fact arrives');

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
  test('reads back every fact of one call and of no other', async () => {
    const connection = await newStreams();
    const publisher = createPublisher(connection, logger);
    const call = factTeller();
    const other = factTeller();
    const facts = [
      call.dialing(),
      call.answered(),
      call.amd('amd_machine_detected'),
      call.amd('amd_tone_detected'),
      call.amd('amd_stopped'),
      call.completed(),
    ];
    for (const fact of facts) {
      await publisher.publish(fact);
      await publisher.publish(other.ringing());
    }

    expect(await factsOfCall(connection, call.identity)).toEqual(facts);
    expect(await factsOfCall(connection, factTeller().identity)).toEqual([]);
    await publisher.stop(1_000);
  });
});
