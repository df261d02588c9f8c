import { afterEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { BatchConsumer } from '../../src/events/batch-consumer.ts';
import type { EventConnection } from '../../src/events/connection.ts';
import { type Ingested, startIngestConsumer } from '../../src/events/ingest.ts';
import { streamNames } from '../../src/events/subjects.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { dataRefusal } from '../../src/store/sql-errors.ts';
import { eventually } from '../support/eventually.ts';
import { startTestNats, withParts } from '../support/nats.ts';
import { forSuite } from '../support/opened.ts';
import { ensureStreams } from '../support/streams.ts';

const body = z.looseObject({ _id: z.string().min(1).max(64), status: z.string().optional() });
type Body = z.infer<typeof body>;

const bots = new Map([
  ['st-bot', { botId: 'st-bot', accountId: 'acme' }],
  ['bot-alias', { botId: 'st-bot', accountId: 'acme' }],
]);

let consumers: BatchConsumer[] = [];
const nats = forSuite(startTestNats);
afterEach(async () => {
  await Promise.all(consumers.map((consumer) => consumer.stop()));
  consumers = [];
});

async function newStreams(): Promise<EventConnection> {
  const connection = await nats.connect();
  await ensureStreams(connection, { eventDays: 1, contextHours: 1 });
  return connection;
}

type Apply = (batch: readonly Ingested<Body>[]) => void;

async function ingest(
  connection: EventConnection,
  apply: Apply,
  ownerOf = async (name: string) => bots.get(name),
): Promise<BatchConsumer> {
  const consumer = await startIngestConsumer(connection, {
    kind: 'messages',
    schema: body,
    ownerOf,
    apply: async (batch) => apply(batch),
    refusalOf: dataRefusal,
    maxBatch: 10,
    logger: silentLogger,
  });
  consumers.push(consumer);
  return consumer;
}

/** Publishes as any NATS client does, without JetStream and without our code. */
function publish(connection: EventConnection, bot: string, payload: unknown, kind = 'messages') {
  connection.nats.publish(
    `${connection.prefix}.ingest.${kind}.${bot}`,
    typeof payload === 'string' ? payload : JSON.stringify(payload),
  );
}

async function isCaughtUp(connection: EventConnection): Promise<boolean> {
  const { num_pending, num_ack_pending } = await connection.manager.consumers.info(
    streamNames(connection.prefix).ingest,
    `${connection.prefix}_ingest-messages`,
  );
  return num_pending + num_ack_pending === 0;
}

async function deadLetters(connection: EventConnection, count: number) {
  const dead = streamNames(connection.prefix).dead;
  const stored = async () => (await connection.manager.streams.info(dead)).state.messages;
  await eventually(async () => (await stored()) >= count, `${count} dead letters`);
  const letters: { subject: string; reason: string; of: string }[] = [];
  for (let seq = 1; seq <= (await stored()); seq += 1) {
    const letter = await connection.manager.streams.getMessage(dead, { seq });
    if (letter === null) continue;
    const { reason, subject } = letter.json<{ reason: string; subject: string }>();
    letters.push({ subject: letter.subject, reason, of: subject });
  }
  return letters;
}

describe('ingest', () => {
  test('delivers what was published before and after the start, with the bot and its account', async () => {
    const connection = await newStreams();
    const seen: Ingested<Body>[] = [];

    publish(connection, 'st-bot', { _id: 'ms-1', extra: { kept: true } });
    await connection.nats.flush();
    await ingest(connection, (batch) => void seen.push(...batch));
    publish(connection, 'st-bot', { _id: 'ms-2' });
    await eventually(() => seen.length === 2, 'both arrive');

    expect(seen.map((item) => item.bot)).toEqual(Array(2).fill(bots.get('st-bot')));
    expect(seen.map((item) => item.body)).toEqual([
      { _id: 'ms-1', extra: { kept: true } },
      { _id: 'ms-2' },
    ]);
    await eventually(() => isCaughtUp(connection), 'it is caught up');
  });

  test('accepts the alias of a bot', async () => {
    const connection = await newStreams();
    const seen: Ingested<Body>[] = [];
    await ingest(connection, (batch) => void seen.push(...batch));

    publish(connection, 'bot-alias', { _id: 'ms-1' });
    await eventually(() => seen.length === 1, 'it arrives');

    expect(seen[0]?.bot.botId).toBe('st-bot');
  });

  test('each kind has its own consumer, and the server refuses other kinds', async () => {
    const connection = await newStreams();
    const seen: Ingested<Body>[] = [];
    await ingest(connection, (batch) => void seen.push(...batch));

    publish(connection, 'st-bot', { _id: 'tr-1' }, 'testruns');
    publish(connection, 'st-bot', { _id: 'ms-1' });
    await eventually(() => seen.length === 1, 'the message arrives');

    expect(seen[0]?.body._id).toBe('ms-1');
    await expect(
      connection.jetstream.publish(`${connection.prefix}.ingest.mesages.st-bot`, '{}'),
    ).rejects.toThrow();
  });

  test('a later version has a higher number, and a redelivery has the same number', async () => {
    const connection = await newStreams();
    const seen: Ingested<Body>[] = [];
    let isUnreachable = true;
    await ingest(connection, (batch) => {
      seen.push(...batch);
      if (isUnreachable) throw new Error('the store is unreachable');
    });

    publish(connection, 'st-bot', { _id: 'ms-1', status: 'queued' });
    publish(connection, 'st-bot', { _id: 'ms-1', status: 'delivered' });
    const versions = (status: string) =>
      seen.filter((item) => item.body.status === status).map((item) => item.version);
    await eventually(() => versions('delivered').length > 1, 'it comes again');
    isUnreachable = false;
    await eventually(() => versions('queued').length > 1, 'the other comes again');

    const [queued = 0, delivered = 0] = [versions('queued')[0], versions('delivered')[0]];
    expect(delivered).toBeGreaterThan(queued);
    expect(new Set(versions('queued'))).toEqual(new Set([queued]));
    expect(new Set(versions('delivered'))).toEqual(new Set([delivered]));
  });

  test('versions keep rising after the stream was created anew', async () => {
    const connection = await newStreams();
    const seen: Ingested<Body>[] = [];
    const first = await ingest(connection, (batch) => void seen.push(...batch));
    for (const status of ['received', 'queued']) {
      publish(connection, 'st-bot', { _id: 'ms-1', status });
    }
    await eventually(() => seen.length === 2, 'both arrive');
    await first.stop();
    await connection.manager.streams.delete(streamNames(connection.prefix).ingest);
    await ensureStreams(connection, { eventDays: 1, contextHours: 1 });

    await ingest(connection, (batch) => void seen.push(...batch));
    publish(connection, 'st-bot', { _id: 'ms-1', status: 'delivered' });
    await eventually(() => seen.length === 3, 'the third arrives');

    expect(seen.map((item) => item.version)).toEqual(
      seen.map((item) => item.version).sort((a, b) => a - b),
    );
  });

  test('a resource that is published twice under one message id within the window arrives once', async () => {
    const connection = await newStreams();
    const subject = `${connection.prefix}.ingest.messages.st-bot`;

    await connection.jetstream.publish(subject, '{"_id":"ms-1"}', { msgID: 'ms-1' });
    const second = await connection.jetstream.publish(subject, '{"_id":"ms-1"}', { msgID: 'ms-1' });

    expect(second.duplicate).toBe(true);
  });

  test.each([
    ['no JSON', 'not json', 'not JSON'],
    ['an empty body', '', 'not JSON'],
    ['a body without its id', '{"status":"queued"}', /is required\s.*_id/],
    ['a body of another kind', '[1]', /must be an object/],
    ['a body that is too large', JSON.stringify({ _id: 'x', pad: 'y'.repeat(262_144) }), /larger/],
    ['an abyss', `{"_id":"x","pad":${'['.repeat(50_000)}${']'.repeat(50_000)}}`, /levels deep/],
  ])('%s becomes a dead letter with the reason', async (_what, payload, reason) => {
    const connection = await newStreams();
    const seen: Ingested<Body>[] = [];
    await ingest(connection, (batch) => void seen.push(...batch));

    publish(connection, 'st-bot', payload);
    publish(connection, 'st-bot', { _id: 'ms-good' });
    await eventually(() => seen.length === 1, 'the good one arrives');

    const [letter] = await deadLetters(connection, 1);
    expect(letter?.subject).toBe(`${connection.prefix}.dead.ingest-messages`);
    expect(letter?.of).toBe(`${connection.prefix}.ingest.messages.st-bot`);
    expect(letter?.reason).toEqual(
      typeof reason === 'string' ? reason : expect.stringMatching(reason),
    );
    expect(seen[0]?.body._id).toBe('ms-good');
  });

  test('a stop waits for dead letters that are being published', async () => {
    const connection = await newStreams();
    const order: string[] = [];
    let goOn = (): void => undefined;
    const isReleased = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const putLater: EventConnection['put'] = async (...letter) => {
      order.push('begun');
      await isReleased;
      const stored = await connection.put(...letter);
      order.push('stored');
      return stored;
    };
    const consumer = await ingest(withParts(connection, { put: putLater }), () => undefined);

    publish(connection, 'st-bot', 'not json');
    await eventually(() => order.length === 1, 'the letter is being written');
    const stopped = consumer.stop().then(() => order.push('stopped'));
    for (let round = 0; round < 10; round += 1) await connection.nats.flush();
    goOn();
    await stopped;

    expect(order).toEqual(['begun', 'stored', 'stopped']);
  });

  test('a resource of an unknown bot becomes a dead letter, and the rest of its batch arrives', async () => {
    const connection = await newStreams();
    const seen: Ingested<Body>[] = [];
    for (const bot of ['st-stranger', 'st-bot', 'st-stranger']) {
      publish(connection, bot, { _id: `ms-of-${bot}` });
    }
    await connection.nats.flush();

    await ingest(connection, (batch) => void seen.push(...batch));
    const letters = await deadLetters(connection, 2);

    expect(letters.map((letter) => letter.reason)).toEqual(
      Array(2).fill('the bot is not registered'),
    );
    await eventually(() => seen.length > 0, 'the other one arrives');
    expect(seen.map((item) => item.body._id)).toEqual(['ms-of-st-bot']);
  });

  test('nothing is lost while the store can neither look up owners nor store bodies', async () => {
    const connection = await newStreams();
    const applied = new Set<string>();
    let state: 'no owner' | 'no write' | 'up' = 'no owner';
    let failures = 0;
    const fail = () => {
      failures += 1;
      throw Object.assign(new Error('Connection terminated'), { code: '57P01' });
    };
    await ingest(
      connection,
      (batch) => {
        if (state !== 'up') fail();
        for (const item of batch) applied.add(item.body._id);
      },
      async (name) => (state === 'no owner' ? fail() : bots.get(name)),
    );

    for (let index = 0; index < 50; index += 1)
      publish(connection, 'st-bot', { _id: `ms-${index}` });
    await eventually(() => failures >= 3, 'the owner is asked for in vain');
    state = 'no write';
    const before = failures;
    await eventually(() => failures >= before + 3, 'the write fails');
    state = 'up';
    await eventually(() => applied.size === 50, 'all are applied');
    await eventually(() => isCaughtUp(connection), 'it is caught up');

    const dead = await connection.manager.streams.info(streamNames(connection.prefix).dead);
    expect(dead.state.messages).toBe(0);
  });

  test('a resource that the database refuses becomes a dead letter, and its neighbours are stored', async () => {
    const connection = await newStreams();
    const applied = new Set<string>();
    for (let index = 0; index < 5; index += 1)
      publish(connection, 'st-bot', { _id: `ms-${index}` });
    await connection.nats.flush();

    await ingest(connection, (batch) => {
      if (batch.some((item) => item.body._id === 'ms-2')) {
        const cause = Object.assign(new Error('value out of range'), { code: '22003' });
        throw new Error('Failed query', { cause });
      }
      for (const item of batch) applied.add(item.body._id);
    });
    const [letter] = await deadLetters(connection, 1);

    expect(letter?.reason).toBe('the database refuses it (22003)');
    await eventually(() => applied.size === 4, 'the others are applied');
  });
});
