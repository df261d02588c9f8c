// Publishes events that the database has, but the calls stream has lost, e.g. because NATS lost
// messages that it had acknowledged, or its data was restored from a backup.
//
// An event is missing if the database says that it was published, and the stream doesn't have its
// id. Other events are not missing: their owners still have to publish them. To find the missing
// events, we compare the ids on the stream with those in the database. Then we publish each missing
// event only if its subject hasn't changed since we looked, so two repairs at the same time, or a
// repair beside a live call, store no event twice.

import { setTimeout as pause } from 'node:timers/promises';
import { JetStreamApiError } from '@nats-io/jetstream';
import type { CallEvent } from '../calls/contract/call-event.ts';
import { publishedEvent } from '../calls/contract/published-event.ts';
import type { Logger } from '../lib/logger.ts';
import { takeTurns } from '../lib/turns.ts';
import { messageIdHeader } from './acknowledged-publishing.ts';
import type { EventConnection } from './connection.ts';
import { type EventIndex, messagesSince, readEventIndex } from './event-index.ts';
import { isRefused } from './publisher.ts';
import { callSubject, streamNames } from './subjects.ts';

/** What the repair needs to know about a call. `PublishedCall` in the store has these members. */
export type RepairedCall = {
  readonly callId: string;
  readonly acceptedAtMs: number;
  readonly publishedThrough: number;
  readonly events: readonly {
    readonly id: string;
    readonly eventSequence: number;
    readonly timeMs: number;
  }[];
};

export type RepairPorts = {
  readonly connection: EventConnection;
  /** Returns the calls accepted after this one, with their events since `sinceMs`. */
  readonly page: (query: {
    readonly after: Pick<RepairedCall, 'acceptedAtMs' | 'callId'>;
    readonly sinceMs: number;
    readonly limit: number;
  }) => Promise<readonly RepairedCall[]>;
  /** Returns all the stored events of these calls. Each call's events are in order. */
  readonly eventsOf: (callIds: readonly string[]) => Promise<readonly CallEvent[]>;
  /** Returns the number of the call's last event that this process has published. */
  readonly publishedThrough?: (callId: string) => number | undefined;
  /** Writes the context that the event leads to. */
  readonly writeContext?: (event: CallEvent) => Promise<void>;
  readonly logger: Logger;
};

export type RepairOptions = {
  readonly since: Date;
  /** The longest time between a call's acceptance and its end. */
  readonly maxCallMs: number;
  /** Only counts the missing events. */
  readonly isDryRun?: boolean;
  readonly stopped?: AbortSignal;
  /** How many messages of the stream one pass remembers. Default: 2,000,000. */
  readonly maxMessagesInPass?: number;
};

export type RepairResult = {
  readonly calls: number;
  readonly events: number;
  readonly missing: number;
  readonly published: number;
  /** Missing events that NATS refuses, e.g. because they are too large. */
  readonly refused: number;
  /** Events older than the first message that the stream's limits have left. */
  readonly tooOld: number;
};

const callsInPage = 500;
const callsAtOnce = 16;
/** Takes about 30 MB. For more messages, we read the stream several times. */
const defaultMessagesInPass = 2_000_000;
/**
 * The clocks of NATS and of the gateways differ by less than this. A message can't be older than
 * its event otherwise.
 */
const clockDifferenceMs = 5 * 60_000;
/** nats-server's error code for `wrong last sequence`. */
const wrongLastSequence = 10_071;
const maxTries = 5;
const lagPauseMs = 200;
/** Bounds how many messages of one subject we look at. */
const maxNewer = 10_000;

type Mutable<Type> = { -readonly [Member in keyof Type]: Type[Member] };

/**
 * @throws Error if the stream or the database is away. What has been published until then stays,
 *   and a later repair continues.
 */
export async function repairEvents(
  ports: RepairPorts,
  options: RepairOptions,
): Promise<RepairResult> {
  return await new Repair(ports, options).run();
}

class Repair {
  readonly #ports: RepairPorts;
  readonly #options: RepairOptions;
  readonly #result: Mutable<RepairResult> = {
    ...{ calls: 0, events: 0, missing: 0, published: 0, refused: 0, tooOld: 0 },
  };
  readonly #turns = takeTurns({ running: callsAtOnce, waiting: callsInPage }, () => {
    throw new Error('a page has more calls than turns');
  });
  /** The stream's last message when the repair began. */
  #lastSequence = 0;
  /** Events before this time may have been removed by the stream's limits. */
  #keptSinceMs = 0;

  constructor(ports: RepairPorts, options: RepairOptions) {
    this.#ports = ports;
    this.#options = options;
  }

  async run(): Promise<RepairResult> {
    const { connection } = this.#ports;
    const { state } = await connection.manager.streams.info(streamNames(connection.prefix).calls);
    this.#lastSequence = state.last_seq;
    // A stream whose first message is its very first has not removed any.
    if (state.first_seq > 1) {
      this.#keptSinceMs = state.messages === 0 ? Date.now() : Date.parse(state.first_ts);
    }
    const maxMessages = this.#options.maxMessagesInPass ?? defaultMessagesInPass;
    const since = new Date(this.#options.since.getTime() - clockDifferenceMs);
    const messages = await messagesSince(connection, since);
    const passes = Math.max(1, Math.ceil(messages / maxMessages));
    for (let pass = 0; pass < passes; pass += 1) {
      const includes = (call: string): boolean => passOf(call, passes) === pass;
      const index = await readEventIndex(connection, {
        since,
        lastSequence: this.#lastSequence,
        includes,
        stopped: this.#options.stopped,
      });
      await this.#compare(index, includes);
    }
    return this.#result;
  }

  async #compare(index: EventIndex, includes: (call: string) => boolean): Promise<void> {
    const { since, maxCallMs } = this.#options;
    const sinceMs = since.getTime();
    let after = { acceptedAtMs: sinceMs - maxCallMs, callId: '' };
    for (;;) {
      this.#options.stopped?.throwIfAborted();
      const page = await this.#ports.page({ after, sinceMs, limit: callsInPage });
      const calls = page.filter(({ callId }) => includes(withoutPrefix(callId)));
      const missing = this.#missingIn(calls, index);
      if (missing.size > 0 && this.#options.isDryRun !== true) await this.#publish(missing);
      const last = page.at(-1);
      if (last === undefined || page.length < callsInPage) return;
      after = last;
    }
  }

  #missingIn(
    calls: readonly RepairedCall[],
    index: EventIndex,
  ): ReadonlyMap<string, ReadonlySet<string>> {
    const missing = new Map<string, ReadonlySet<string>>();
    for (const call of calls) {
      const ids = this.#missingOf(call, index);
      if (ids.size > 0) missing.set(call.callId, ids);
    }
    return missing;
  }

  #missingOf(call: RepairedCall, index: EventIndex): ReadonlySet<string> {
    const missing = new Set<string>();
    const through = Math.max(
      call.publishedThrough,
      this.#ports.publishedThrough?.(call.callId) ?? 0,
    );
    this.#result.calls += 1;
    for (const { id, eventSequence, timeMs } of call.events) {
      if (eventSequence > through) continue;
      this.#result.events += 1;
      if (index.has(id)) continue;
      if (timeMs < this.#keptSinceMs) this.#result.tooOld += 1;
      else missing.add(id);
    }
    this.#result.missing += missing.size;
    return missing;
  }

  async #publish(missing: ReadonlyMap<string, ReadonlySet<string>>): Promise<void> {
    const byCall = new Map<string, CallEvent[]>();
    for (const event of await this.#ports.eventsOf([...missing.keys()])) {
      if (missing.get(event.callId)?.has(event.id) !== true) continue;
      const events = byCall.get(event.callId);
      if (events === undefined) byCall.set(event.callId, [event]);
      else events.push(event);
    }
    await Promise.all(
      [...byCall.values()].map((events) =>
        this.#turns(async () => {
          for (const event of events) await this.#publishOne(event);
        }),
      ),
    );
  }

  async #publishOne(event: CallEvent): Promise<void> {
    this.#options.stopped?.throwIfAborted();
    try {
      if (await this.#putIfMissing(event)) this.#result.published += 1;
      else this.#result.missing -= 1;
    } catch (error) {
      if (!isRefused(error)) throw error;
      this.#result.refused += 1;
      this.#ports.logger.warn({ err: error, eventId: event.id }, 'NATS refuses a missing event');
    }
  }

  /** @returns false if somebody else has published the event meanwhile */
  async #putIfMissing(event: CallEvent): Promise<boolean> {
    const { connection, writeContext } = this.#ports;
    await writeContext?.(event);
    const subject = callSubject(connection.prefix, event, event.type);
    for (let tries = 1; tries <= maxTries; tries += 1) {
      const newer = await this.#newerOn(subject);
      if (newer === undefined) {
        await pause(lagPauseMs);
        continue;
      }
      if (newer.ids.has(event.id)) return false;
      let isNew = true;
      const onDuplicate = (): void => {
        isNew = false;
      };
      try {
        await connection.put(subject, JSON.stringify(publishedEvent(event)), {
          ...{ id: event.id, expectedLastSequence: newer.last, onDuplicate },
        });
        return isNew;
      } catch (error) {
        if (!(error instanceof JetStreamApiError && error.code === wrongLastSequence)) throw error;
      }
    }
    throw new Error(`the subject of an event changed ${maxTries} times while it was published`);
  }

  /**
   * Returns the subject's last sequence, and the ids that it got since the repair began. Undefined
   * if the replica that we asked lags behind the leader.
   */
  async #newerOn(
    subject: string,
  ): Promise<{ readonly last: number; readonly ids: ReadonlySet<string> } | undefined> {
    const { manager, prefix } = this.#ports.connection;
    const stream = streamNames(prefix).calls;
    const last = (await manager.streams.getMessage(stream, { last_by_subj: subject }))?.seq ?? 0;
    const ids = new Set<string>();
    let sequence = this.#lastSequence;
    for (let read = 0; sequence < last && read < maxNewer; read += 1) {
      const next = await manager.direct.getMessage(stream, {
        seq: sequence + 1,
        next_by_subj: subject,
      });
      if (next === null) return undefined;
      ids.add(next.header.get(messageIdHeader));
      sequence = next.seq;
    }
    return { last, ids };
  }
}

function withoutPrefix(callId: string): string {
  return callId.replace(/^call-/, '');
}

/** Assigns each call to a pass. Call ids are random, so the passes are of about the same size. */
function passOf(call: string, passes: number): number {
  let hash = 0;
  for (let at = 0; at < call.length; at += 1) hash = (hash * 31 + call.charCodeAt(at)) >>> 0;
  return hash % passes;
}
