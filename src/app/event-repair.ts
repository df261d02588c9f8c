// Publishes events again that NATS has lost, without anybody asking: when the calls stream is found
// to have lost its last messages. Each process checks this all the time. After a start and after
// each new connection to NATS, it also looks for the last events in the database, because the
// process that published them may have died together with NATS.
//
// One node at a time compares all calls. Until it's their turn, the others only add the last events
// of their own live calls, of which the database doesn't know yet that they were published.

import type { CallId } from '../calls/contract/identity.ts';
import { type Compared, Losses } from '../events/losses.ts';
import { earliestLost } from '../events/lost-tail.ts';
import type { EventRelay } from '../events/relay.ts';
import { repairEvents } from '../events/repair.ts';
import { streamNames } from '../events/subjects.ts';
import { readContextFacts } from '../interactions/context-facts.ts';
import type { ContextStore } from '../interactions/context-store.ts';
import { ContextWriter } from '../interactions/context-writer.ts';
import { repeat } from '../lib/repeat.ts';
import type { PublishedCall } from '../store/calls/published-calls.ts';
import type { Environment } from './environment.ts';
import type { Events } from './events.ts';
import type { Storage } from './storage.ts';

/** How often we look for work, and try again after a failure. */
const intervalMs = 5_000;
/** How many calls tell after a connection whether the stream has lost its last messages. */
const settledToCheck = 50;
const unsettledToCheck = 200;
/** Events of these calls may have been published this long before their ends. */
const marginMs = 10 * 60_000;
/** Any number that nothing else in this database uses as an advisory lock. */
const lockId = 7_262_310_025;

type Parts = {
  readonly storage: Storage;
  readonly events: Events;
  readonly contexts: ContextStore;
  readonly relay: Pick<EventRelay, 'publishedThrough'>;
};

export function openEventRepair(environment: Environment, parts: Parts): void {
  const { logger, closers } = environment;
  const { connection } = parts.events;
  const losses = new Losses();
  let isTailDue = true;
  parts.events.onLost((since) => losses.note(since));
  connection.onConnected(() => {
    isTailDue = true;
  });
  const checkTail = async (): Promise<void> => {
    // A connection that is made meanwhile makes it due again.
    isTailDue = false;
    try {
      const since = await tailLostSince(parts);
      if (since !== undefined) losses.note(since);
    } catch (error) {
      isTailDue = true;
      throw error;
    }
  };
  const work = async (stopped: AbortSignal): Promise<void> => {
    const { calls } = streamNames(connection.prefix);
    if (!connection.connected() || connection.streams.isAway(calls)) return;
    if (isTailDue) await checkTail();
    await losses.repair((since, isOwnDone) =>
      repair(environment, parts, { since, isOwnDone, stopped }),
    );
  };
  const repetition = repeat({ name: 'event repair', everyMs: intervalMs, logger }, work);
  closers.add('event repair', () => repetition.stop());
}

async function tailLostSince({ storage, events }: Parts): Promise<Date | undefined> {
  const { publishedCalls } = storage;
  const settled = await publishedCalls.lastSettled(settledToCheck);
  const unsettled = await publishedCalls.lastUnsettled(unsettledToCheck);
  const isPublished = new Set([
    ...settled.flatMap(published),
    ...unsettled.flatMap((call) => published(call).slice(-1)),
  ]);
  const stored = await publishedCalls.eventsOf(
    [...settled, ...unsettled].map(({ callId }) => callId),
  );
  const earliest = await earliestLost(
    events.connection,
    stored.filter(({ id }) => isPublished.has(id)),
  );
  return earliest === undefined ? undefined : new Date(earliest.getTime() - marginMs);
}

/** Returns the ids of the call's events that were published, in order. */
function published({ events, publishedThrough }: PublishedCall): readonly string[] {
  return events.filter((event) => event.eventSequence <= publishedThrough).map(({ id }) => id);
}

async function repair(
  { config, logger }: Environment,
  { storage, events, contexts, relay }: Parts,
  how: { readonly since: Date; readonly isOwnDone: boolean; readonly stopped: AbortSignal },
): Promise<Compared> {
  const { since, isOwnDone, stopped } = how;
  const { publishedCalls, database } = storage;
  const writer = new ContextWriter({
    contexts,
    readFacts: (callId) => readContextFacts(database.pool, callId),
  });
  return await withLock(storage, config.databaseUrl === undefined, async (isHeld) => {
    const compared: Compared = isHeld ? 'all' : 'own';
    if (!isHeld && isOwnDone) return compared;
    logger.warn({ since, compared }, 'publishing the events that NATS has lost');
    const ownerId = isHeld ? undefined : config.ownerId;
    const result = await repairEvents(
      {
        ...{ connection: events.connection, logger },
        page: (query) => publishedCalls.page({ ...query, ownerId }),
        eventsOf: (callIds) => publishedCalls.eventsOf(callIds),
        publishedThrough: (callId) => relay.publishedThrough(callId as CallId),
        writeContext: (event) => writer.write(event),
      },
      { since, stopped, maxCallMs: config.calls.maxLifeMs },
    );
    logger.warn({ since, compared, ...result }, 'published the events that NATS had lost');
    return compared;
  });
}

/** Runs the work. `isHeld` is true unless another node repairs all calls at the same time. */
async function withLock<Result>(
  { database }: Pick<Storage, 'database'>,
  isAlone: boolean,
  work: (isHeld: boolean) => Promise<Result>,
): Promise<Result> {
  if (isAlone) return await work(true);
  const client = await database.pool.connect();
  try {
    const { rows } = await client.query<{ held: boolean }>(
      'select pg_try_advisory_lock($1::bigint) as held',
      [lockId],
    );
    return await work(rows[0]?.held === true);
  } finally {
    // Closes the connection, which releases the lock. After an outage, the connection may be dead.
    client.release(true);
  }
}
