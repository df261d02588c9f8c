import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type CommandHandler, serveCommands } from '../../src/events/commands.ts';
import type { EventConnection } from '../../src/events/connection.ts';
import {
  consumeDialout,
  type DialoutConsumerOptions,
  publishDialout,
} from '../../src/events/dialout-queue.ts';
import { ensureStreams } from '../../src/events/streams.ts';
import { commandSubject, streamNames } from '../../src/events/subjects.ts';
import { silentLogger as logger } from '../../src/lib/logger.ts';
import { eventually } from '../support/eventually.ts';
import { startTestNats, type TestNats } from '../support/nats.ts';

let nats: TestNats;
beforeAll(async () => {
  nats = await startTestNats();
});
afterAll(async () => {
  await nats.stop();
});

const room = async (): Promise<number> => 1_000;

/** With room for everything, unless told otherwise. */
const listen = (
  connection: EventConnection,
  handle: DialoutConsumerOptions['handle'],
  more: Partial<DialoutConsumerOptions> = {},
) => consumeDialout(connection, { maxInFlight: 10, room, logger, handle, ...more });

async function newStreams(): Promise<EventConnection> {
  const connection = await nats.connect();
  await ensureStreams(connection, { eventDays: 1, contextHours: 1 });
  return connection;
}

describe('the dial-out queue', () => {
  const messages = async (connection: EventConnection) =>
    (await connection.manager.streams.info(streamNames(connection.prefix).dialout)).state.messages;

  test('hands each call over once, in order, and forgets it', async () => {
    const connection = await newStreams();
    const seen: string[] = [];
    const queue = await listen(connection, async (callId) => void seen.push(callId));

    const callIds = Array.from({ length: 50 }, (_, index) => `call-${index}`);
    for (const callId of callIds)
      await publishDialout(connection, callId, { acceptedBy: 'node-1/a' });
    await publishDialout(connection, 'call-7', { acceptedBy: 'node-1/a' });
    await eventually(async () => (await messages(connection)) === 0, 'the queue is empty');

    expect(seen).toEqual(callIds);
    await queue.stop();
  });

  test('keeps what was queued while nobody listened, and says which process accepted it', async () => {
    const connection = await newStreams();
    const seen: unknown[] = [];
    await publishDialout(connection, 'call-1', { acceptedBy: 'node-1/a' });

    const queue = await listen(connection, async (...told) => void seen.push(told));
    await eventually(() => seen.length === 1, 'it arrives');

    expect(seen).toEqual([['call-1', { acceptedBy: 'node-1/a' }]]);
    await queue.stop();
  });

  test('never has more under way than allowed', async () => {
    const connection = await newStreams();
    let underWay = 0;
    let most = 0;
    const done: string[] = [];
    const queue = await listen(
      connection,
      async (callId) => {
        underWay += 1;
        most = Math.max(most, underWay);
        await new Promise((resolve) => setImmediate(resolve));
        underWay -= 1;
        done.push(callId);
      },
      { maxInFlight: 3 },
    );

    await Promise.all(
      Array.from({ length: 40 }, (_, index) =>
        publishDialout(connection, `call-${index}`, { acceptedBy: 'node-1/a' }),
      ),
    );
    await eventually(() => done.length === 40, 'all are done');

    expect(most).toBe(3);
    await queue.stop();
  });

  test('brings a call again whose handler failed', async () => {
    const connection = await newStreams();
    let failures = 2;
    const done: string[] = [];
    const queue = await listen(
      connection,
      async (callId) => {
        if (callId === 'call-bad' && failures-- > 0) throw new Error('database away');
        done.push(callId);
      },
      { maxInFlight: 3 },
    );

    await publishDialout(connection, 'call-bad', { acceptedBy: 'node-1/a' });
    await publishDialout(connection, 'call-good', { acceptedBy: 'node-1/a' });
    await eventually(() => done.length === 2, 'both are done');

    expect(done).toEqual(['call-good', 'call-bad']);
    await queue.stop();
  });
});

describe('a dial-out queue whose process is full', () => {
  test('leaves to others what it has no room for', async () => {
    const connection = await newStreams();
    const seen = { full: [] as string[], other: [] as string[] };
    let free = 2;
    const full = await consumeDialout(connection, {
      maxInFlight: 10,
      room: (signal) => (free > 0 ? Promise.resolve(free) : untilStopped(signal)),
      logger,
      handle: async (callId) => {
        free -= 1;
        seen.full.push(callId);
      },
    });
    const callIds = Array.from({ length: 8 }, (_, index) => `call-${index}`);
    for (const callId of callIds)
      await publishDialout(connection, callId, { acceptedBy: 'node-1/a' });
    await eventually(() => seen.full.length === 2, 'the first is full');
    const other = await listen(connection, async (callId) => void seen.other.push(callId));
    await eventually(() => seen.other.length === 6, 'the other takes the rest');

    expect(seen).toEqual({ full: callIds.slice(0, 2), other: callIds.slice(2) });
    await full.stop();
    await other.stop();
  });

  test('takes no second copy of a call that it holds for longer than the acknowledge wait', async () => {
    const connection = await newStreams();
    const begun: string[] = [];
    let letGo = () => {};
    const held = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    const queue = await listen(
      connection,
      async (callId) => {
        begun.push(callId);
        await held;
      },
      { maxInFlight: 4, acknowledgeWaitMs: 200 },
    );
    const callIds = ['call-1', 'call-2'];
    for (const callId of callIds)
      await publishDialout(connection, callId, { acceptedBy: 'node-1/a' });
    const { streams, consumers } = connection.manager;
    const { dialout } = streamNames(connection.prefix);
    const deliveries = async () =>
      (await consumers.list(dialout).next())[0]?.delivered.consumer_seq ?? 0;
    await eventually(async () => (await deliveries()) >= 6, 'each was delivered three times');

    letGo();
    await eventually(
      async () => (await streams.info(dialout)).state.messages === 0,
      'the queue is empty',
    );
    expect(begun).toEqual(callIds);
    await queue.stop();
  });
});

function untilStopped(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });
}

describe('commands', () => {
  async function serving(handler: CommandHandler) {
    const connection = await nats.connect();
    const server = serveCommands(connection, handler, logger);
    await connection.nats.flush();
    const ask = async (body: string, callId = 'call-1'): Promise<unknown> =>
      (
        await connection.nats.request(commandSubject(connection.prefix, callId), body, {
          timeout: 2_000,
        })
      ).json<unknown>();
    return { ask, server };
  }

  test('a hang-up reaches the handler, and its answer the bot', async () => {
    const asked: string[] = [];
    const { ask, server } = await serving(async (callId, { command }) => {
      asked.push(`${command} ${callId}`);
      return { ok: true, state: 'ending' };
    });

    expect(await ask('{"command":"hangup"}')).toEqual({ ok: true, state: 'ending' });
    expect(asked).toEqual(['hangup call-1']);
    server.stop();
  });

  test.each(['', 'hangup', '{}', '{"command":"dial"}', `{"command":"${'x'.repeat(5_000)}"}`])(
    'what is no command is answered as such: %#',
    async (body) => {
      const { ask, server } = await serving(async () => ({ ok: true }));

      expect(await ask(body)).toMatchObject({ ok: false, error: expect.any(String) });
      server.stop();
    },
  );

  test('a handler that fails says no more than that', async () => {
    const { ask, server } = await serving(() => Promise.reject(new Error('secret detail')));

    expect(await ask('{"command":"hangup"}')).toEqual({ ok: false, error: 'internal error' });
    server.stop();
  });

  test('a call of another node is left to that node', async () => {
    const connection = await nats.connect();
    const mine =
      (callId: string): CommandHandler =>
      async (asked) =>
        asked === callId ? { ok: true, by: callId } : undefined;
    const servers = ['call-a', 'call-b'].map((callId) =>
      serveCommands(connection, mine(callId), logger),
    );

    const reply = await connection.nats.request(
      commandSubject(connection.prefix, 'call-b'),
      '{"command":"hangup"}',
      { timeout: 2_000 },
    );

    expect(reply.json()).toEqual({ ok: true, by: 'call-b' });
    for (const server of servers) server.stop();
  });
});
