// Publishes events again that NATS has lost, without anybody asking: when the calls stream is found
// to have lost its last messages, and after a start. One node at a time compares all calls. The
// others only add the last events of their own live calls. The database doesn't yet know that these
// were published.

import type { CallId } from '../calls/contract/identity.ts';
import { earliestLost } from '../events/lost-tail.ts';
import type { EventRelay } from '../events/relay.ts';
import { type RepairResult, repairEvents } from '../events/repair.ts';
import { streamNames } from '../events/subjects.ts';
import { readContextFacts } from '../interactions/context-facts.ts';
import type { ContextStore } from '../interactions/context-store.ts';
import { ContextWriter } from '../interactions/context-writer.ts';
import { repeat } from '../lib/repeat.ts';
import type { Environment } from './environment.ts';
import type { Events } from './events.ts';
import type { Storage } from './storage.ts';

/** How often we look for work, and try again after a failure. */
const intervalMs = 5_000;
/** How many calls tell after a start whether the stream has lost its last messages. */
const callsToCheck = 50;
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
  /** Messages since this time may be lost. */
  let lostSince: Date | undefined;
  let isTailChecked = false;
  const note = (since: Date): void => {
    if (lostSince === undefined || since < lostSince) lostSince = since;
  };
  parts.events.onLost(note);
  const work = async (stopped: AbortSignal): Promise<void> => {
    const { calls } = streamNames(connection.prefix);
    if (!connection.connected() || connection.streams.isAway(calls)) return;
    if (!isTailChecked) {
      const since = await tailLostSince(parts);
      isTailChecked = true;
      if (since !== undefined) note(since);
    }
    const since = lostSince;
    if (since === undefined) return;
    logger.warn({ since }, 'publishing the events that NATS has lost');
    const result = await repair(environment, parts, since, stopped);
    if (lostSince === since) lostSince = undefined;
    logger.warn({ since, ...result }, 'published the events that NATS had lost');
  };
  const repetition = repeat({ name: 'event repair', everyMs: intervalMs, logger }, work);
  closers.add('event repair', () => repetition.stop());
}

async function tailLostSince({ storage, events }: Parts): Promise<Date | undefined> {
  const settled = await storage.publishedCalls.lastSettled(callsToCheck);
  const stored = await storage.publishedCalls.eventsOf(settled.map(({ callId }) => callId));
  const last = new Map(stored.map((event) => [event.callId, event]));
  const earliest = await earliestLost(events.connection, [...last.values()]);
  return earliest === undefined ? undefined : new Date(earliest.getTime() - marginMs);
}

async function repair(
  { config, logger }: Environment,
  { storage, events, contexts, relay }: Parts,
  since: Date,
  stopped: AbortSignal,
): Promise<RepairResult> {
  const { publishedCalls, database } = storage;
  const writer = new ContextWriter({
    contexts,
    readFacts: (callId) => readContextFacts(database.pool, callId),
  });
  return await withLock(storage, config.databaseUrl === undefined, async (isHeld) => {
    const ownerId = isHeld ? undefined : config.ownerId;
    return await repairEvents(
      {
        ...{ connection: events.connection, logger },
        page: (query) => publishedCalls.page({ ...query, ownerId }),
        eventsOf: (callIds) => publishedCalls.eventsOf(callIds),
        publishedThrough: (callId) => relay.publishedThrough(callId as CallId),
        writeContext: (event) => writer.write(event),
      },
      { since, stopped },
    );
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
    const isHeld = rows[0]?.held === true;
    try {
      return await work(isHeld);
    } finally {
      if (isHeld) await client.query('select pg_advisory_unlock($1::bigint)', [lockId]);
    }
  } finally {
    client.release();
  }
}
