// Repairs real streams that have lost events.

import { setTimeout as pause } from 'node:timers/promises';
import { DiscardPolicy } from '@nats-io/jetstream';
import { nanos } from '@nats-io/transport-node';
import { describe, expect, test } from 'vitest';
import type { CallEvent } from '../../src/calls/contract/call-event.ts';
import type { EventConnection } from '../../src/events/connection.ts';
import { readEventIndex } from '../../src/events/event-index.ts';
import { createPublisher } from '../../src/events/publisher.ts';
import { type RepairOptions, repairEvents } from '../../src/events/repair.ts';
import { streamNames } from '../../src/events/subjects.ts';
import { silentLogger as logger } from '../../src/lib/logger.ts';
import { eventBuilder } from '../support/call-events.ts';
import { startTestNats } from '../support/nats.ts';
import { forSuite } from '../support/opened.ts';
import { ensureStreams } from '../support/streams.ts';

const longAgo = new Date(0);
const shortWindowMs = 100;

describe('a repair', () => {
  const nats = forSuite(startTestNats);

  test('publishes what the stream has lost, in the order of each call, and nothing twice', async () => {
    const connection = await newStreams();
    const calls = Array.from({ length: 30 }, () => wholeCall());
    await publish(connection, calls.flat());
    // The server loses one call, and the end of some other calls.
    const [lost = [], ...others] = calls.slice(1);
    const ends = others.slice(0, 9).flatMap((call) => call.slice(-1));
    await lose(connection, [...lost, ...ends]);

    const result = await repair(connection, settled(calls));

    expect(result).toEqual({
      ...{ calls: 30, events: 120, missing: 13, published: 13, refused: 0, tooOld: 0 },
    });
    const stored = await idsOn(connection);
    for (const call of calls) {
      const ids = idsOf(call);
      expect(stored.filter((id) => ids.includes(id))).toEqual(ids);
    }
    const again = await repair(connection, settled(calls));
    expect(again).toMatchObject({ missing: 0, published: 0 });
    expect(await idsOn(connection)).toHaveLength(120);
  });

  test('works in several passes when the stream is long', async () => {
    const connection = await newStreams();
    const calls = Array.from({ length: 20 }, () => wholeCall());
    await publish(connection, calls.flat());
    await lose(
      connection,
      calls.flatMap((call) => call.slice(1, 2)),
    );

    const result = await repair(connection, settled(calls), { maxMessagesInPass: 7 });

    expect(result).toMatchObject({ calls: 20, missing: 20, published: 20 });
    expect(await idsOn(connection)).toHaveLength(80);
  });

  test('restores everything after the stream was lost', async () => {
    const connection = await newStreams();
    const calls = [wholeCall(), wholeCall()];
    await publish(connection, calls.flat());
    await connection.manager.streams.delete(streamNames(connection.prefix).calls);
    await ensureStreams(connection, { eventDays: 1, contextHours: 1 });

    const result = await repair(connection, settled(calls));

    expect(result).toMatchObject({ missing: 8, published: 8 });
  });

  test('only counts in a dry run', async () => {
    const connection = await newStreams();
    const call = wholeCall();

    const result = await repair(connection, settled([call]), { isDryRun: true });

    expect(result).toMatchObject({ missing: 4, published: 0 });
    expect(await idsOn(connection)).toEqual([]);
  });

  test('leaves events that their owner has not published yet to the owner', async () => {
    const connection = await newStreams();
    const call = wholeCall();
    await publish(connection, call.slice(0, 1));

    const result = await repair(connection, [{ events: call, publishedThrough: 2 }]);

    expect(result).toMatchObject({ events: 2, missing: 1, published: 1 });
    expect(await idsOn(connection)).toEqual(idsOf(call.slice(0, 2)));
  });

  test('does not bring back what the limits of the stream have removed', async () => {
    const connection = await newStreams();
    const { calls: name } = streamNames(connection.prefix);
    const [old, recent] = [wholeCall(), wholeCall(new Date(Date.now() + 60_000))];
    await publish(connection, [...old, ...recent]);
    await connection.manager.streams.update(name, { max_msgs: 3, discard: DiscardPolicy.Old });
    await lose(connection, []);

    const result = await repair(connection, settled([old, recent]));

    expect(result).toMatchObject({ tooOld: 4, missing: 1, published: 1 });
  });

  test('counts events that NATS refuses, and goes on', async () => {
    const connection = await newStreams();
    const { calls: name } = streamNames(connection.prefix);
    const [large, small] = [wholeCall(), wholeCall()];
    await connection.manager.streams.update(name, { max_msg_size: 1_500 });
    const [first, ...rest] = large;
    const padded = { ...first, data: { pad: 'x'.repeat(2_000) } } as unknown as CallEvent;

    const result = await repair(connection, settled([[padded, ...rest], small]));

    expect(result).toMatchObject({ missing: 8, published: 7, refused: 1 });
  });

  test('begins with the calls that may still have been up then', async () => {
    const connection = await newStreams();
    const begins: number[] = [];
    const page = ({ after }: { readonly after: { readonly acceptedAtMs: number } }) => {
      begins.push(after.acceptedAtMs);
      return Promise.resolve([]);
    };
    const ports = { connection, logger, page, eventsOf: () => Promise.resolve([]) };

    await repairEvents(ports, { since: new Date(10_000_000), maxCallMs: 3_000_000 });

    expect(begins).toEqual([7_000_000]);
  });

  test('two repairs at the same time publish each event once', async () => {
    const connection = await newStreams();
    const calls = Array.from({ length: 50 }, () => wholeCall());

    const results = await Promise.all([1, 2].map(() => repair(connection, settled(calls))));

    expect(await idsOn(connection)).toHaveLength(200);
    expect(results.map(({ published }) => published).reduce((a, b) => a + b)).toBe(200);
  });

  test('reads the whole stream or gives up, because with a part it would publish events twice', async () => {
    const connection = await newStreams();
    const calls = Array.from({ length: 100 }, () => wholeCall());
    await publish(connection, calls.flat());
    const stopping = new AbortController();

    const reading = readEventIndex(connection, {
      ...{ since: longAgo, lastSequence: 400, stopped: stopping.signal },
      includes: () => {
        stopping.abort();
        return true;
      },
    });

    await expect(reading).rejects.toThrow('aborted');
  });

  async function newStreams(): Promise<EventConnection> {
    const connection = await nats.connect();
    await ensureStreams(connection, { eventDays: 1, contextHours: 1 });
    return connection;
  }
});

type StoredCall = { readonly events: readonly CallEvent[]; readonly publishedThrough?: number };

/** Calls whose events have all been published, as far as the database knows. */
function settled(calls: readonly (readonly CallEvent[])[]): readonly StoredCall[] {
  return calls.map((events) => ({ events }));
}

function repair(
  connection: EventConnection,
  calls: readonly StoredCall[],
  options: Partial<RepairOptions> = {},
) {
  const rows = calls.map(({ events, publishedThrough }, index) => ({
    callId: events[0]?.callId ?? '',
    acceptedAtMs: index,
    publishedThrough: publishedThrough ?? events.at(-1)?.eventSequence ?? 0,
    events: events.map(({ id, eventSequence, time }) => ({
      ...{ id, eventSequence, timeMs: Date.parse(time) },
    })),
  }));
  return repairEvents(
    {
      ...{ connection, logger },
      page: ({ after, limit }) =>
        Promise.resolve(
          rows.filter(({ acceptedAtMs }) => acceptedAtMs > after.acceptedAtMs).slice(0, limit),
        ),
      eventsOf: (callIds) =>
        Promise.resolve(
          calls.flatMap(({ events }) => events.filter(({ callId }) => callIds.includes(callId))),
        ),
    },
    { since: longAgo, maxCallMs: 4 * 3_600_000, ...options },
  );
}

function wholeCall(time = new Date()): readonly CallEvent[] {
  const call = eventBuilder();
  return [call.dialing(), call.ringing(), call.selected('dtmf'), call.failed()].map(
    (event): CallEvent => ({ ...event, time: time.toISOString() }),
  );
}

async function publish(connection: EventConnection, events: readonly CallEvent[]): Promise<void> {
  const publisher = createPublisher(connection, logger);
  for (const event of events) await publisher.publish([event]);
  await publisher.stop(1_000);
}

/** Removes events as a crash of the server does, which also forgets their message ids. */
async function lose(connection: EventConnection, events: readonly CallEvent[]): Promise<void> {
  const { calls } = streamNames(connection.prefix);
  const { streams } = connection.manager;
  const ids = new Set(idsOf(events));
  for (const { seq, id } of await messagesOn(connection)) {
    if (ids.has(id)) await streams.deleteMessage(calls, seq);
  }
  await streams.update(calls, { duplicate_window: nanos(shortWindowMs) });
  await pause(2 * shortWindowMs);
}

/** Returns the ids of the events on the stream, in order. */
async function idsOn(connection: EventConnection): Promise<readonly string[]> {
  return (await messagesOn(connection)).map(({ id }) => id);
}

async function messagesOn({ manager, prefix }: EventConnection) {
  const { calls } = streamNames(prefix);
  const { state } = await manager.streams.info(calls);
  const messages: { readonly seq: number; readonly id: string }[] = [];
  for (let seq = state.first_seq; seq <= state.last_seq; seq += 1) {
    const message = await manager.streams.getMessage(calls, { seq }).catch(() => null);
    if (message !== null) messages.push({ seq, id: message.header.get('Nats-Msg-Id') });
  }
  return messages;
}

function idsOf(events: readonly CallEvent[]): readonly string[] {
  return events.map(({ id }) => id);
}
