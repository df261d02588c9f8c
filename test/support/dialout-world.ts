// An in-memory simulation of what outlives a process: the rows in SQL and the stream. Tests let a
// process die at any point and check what the next one makes of the remains.

import { isDeepStrictEqual } from 'node:util';
import type { AcceptedCall } from '../../src/calls/call-types.ts';
import type { CallEvent, TerminalEvent } from '../../src/calls/contract/call-event.ts';
import type { CallId } from '../../src/calls/contract/identity.ts';
import type { StoredLeg } from '../../src/calls/contract/stored-leg.ts';
import { queuedEvent } from '../../src/calls/life/call-events.ts';
import { type CallStep, legsOf } from '../../src/calls/life/call-step.ts';
import type { CallOutbox, UnfinishedCall } from '../../src/calls/ports.ts';
import { EventRelay } from '../../src/events/relay.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import type { RecoveryPorts } from '../../src/recovery/recovery.ts';

type Row = {
  readonly call: AcceptedCall;
  ownerId: string | undefined;
  previousOwnerId: string | undefined;
  /** The legs as in the table, by leg id. */
  readonly legs: Map<string, StoredLeg>;
  ringingAt: Date | undefined;
  answeredAt: Date | undefined;
  readonly events: CallEvent[];
  end: TerminalEvent | undefined;
  /** Sequence number of the last event known to be on the stream. */
  publishedThrough: number;
  /** True if all events are on the stream and no far end is left in the call. */
  isSettled: boolean;
};

/** One process. Its steps are stored immediately and then published. */
export type WorldProcess = {
  readonly outbox: CallOutbox;
  readonly publish: (events: readonly CallEvent[]) => Promise<void>;
  readonly settle: (callId: CallId) => void;
  readonly noteLegsGone: (callId: CallId) => void;
  /** Returns true while some of the call's events are still being published. */
  readonly holds: (callId: CallId) => boolean;
};

export class DialoutWorld {
  readonly #rows = new Map<CallId, Row>();
  /** The events that `publish` stored. Each id occurs once, because JetStream drops duplicates. */
  readonly stream: CallEvent[] = [];
  /** Every published event, repetitions included. */
  readonly published: CallEvent[] = [];
  /** False while NATS is unreachable: publishes wait. */
  isPublishing = true;
  readonly #waiting: (() => void)[] = [];

  readonly ledger: RecoveryPorts['ledger'] = {
    unfinished: async (ownerId, which, limit) =>
      [...this.#rows.values()]
        .filter((row) => row.ownerId === ownerId && row.end === undefined)
        .filter(({ call, previousOwnerId }) =>
          which === 'taken over'
            ? previousOwnerId !== undefined
            : which.callIds.includes(call.callId),
        )
        .slice(0, limit)
        .map(unfinishedOf),
    unsettledEnds: async (ownerId, except, limit) =>
      [...this.#rows.values()]
        .filter((row) => row.ownerId === ownerId && row.end !== undefined && !row.isSettled)
        .filter(({ call }) => !except.includes(call.callId))
        .slice(0, limit)
        .map(unsettledOf),
  };

  /** Accepts a call like the intake does, i.e. with its first event but without an owner. */
  accept(call: AcceptedCall): void {
    this.#rows.set(call.callId, {
      ...{ call, ownerId: undefined, previousOwnerId: undefined, legs: new Map() },
      ...{ ringingAt: undefined, answeredAt: undefined, end: undefined },
      ...{ events: [queuedEvent(call)], publishedThrough: 0, isSettled: false },
    });
  }

  take(callId: CallId, ownerId: string): void {
    this.row(callId).ownerId = ownerId;
  }

  /** Adds a call in the state in which a dead process left it. */
  leave({ call, ownerId, legs, ringingAt, answeredAt, events }: UnfinishedCall): void {
    const known = legs.map((leg, index): [string, StoredLeg] => [
      index === 0 ? call.callId : `leg-${index}`,
      leg,
    ]);
    this.#rows.set(call.callId, {
      ...{
        call,
        ownerId,
        previousOwnerId: undefined,
        legs: new Map(known),
        ringingAt,
        answeredAt,
      },
      ...{ events: [...events], end: undefined, publishedThrough: 0, isSettled: false },
    });
  }

  /** Makes `ownerId` the owner of all calls of other processes that are not settled. */
  takeOver(ownerId: string): void {
    for (const row of this.#rows.values()) {
      if (row.isSettled || row.ownerId === undefined || row.ownerId === ownerId) continue;
      row.previousOwnerId = row.ownerId;
      row.ownerId = ownerId;
    }
  }

  /**
   * Appends a step as the SQL statement does: all or nothing.
   * @returns the events that are now valid, or undefined if the call has ended or belongs to
   *   another process
   */
  append(
    ownerId: string,
    { callId }: AcceptedCall,
    step: CallStep,
    { isUntaken = false, publishedThrough = 0 } = {},
  ): readonly CallEvent[] | undefined {
    const row = this.row(callId);
    const isOwner = isUntaken ? row.ownerId === undefined : row.ownerId === ownerId;
    if (!isOwner || !mayEnd(row, step)) {
      leaveLegs(row, step);
      return undefined;
    }
    row.ownerId = ownerId;
    leaveLegs(row, step);
    row.ringingAt ??= step.ringingAt;
    row.answeredAt ??= step.answeredAt;
    row.publishedThrough = Math.max(row.publishedThrough, publishedThrough);
    return storeEvents(row, step);
  }

  process(ownerId: string): WorldProcess {
    const tails = new Map<CallId, Promise<void>>();
    const publish = (events: readonly CallEvent[]): Promise<void> => {
      const callId = events[0]?.callId as CallId | undefined;
      if (callId === undefined) return Promise.resolve();
      const published = (tails.get(callId) ?? Promise.resolve()).then(() => this.#publish(events));
      tails.set(callId, published);
      return published.finally(() => {
        if (tails.get(callId) === published) tails.delete(callId);
      });
    };
    const holds = (callId: CallId): boolean => tails.has(callId);
    const settle = (callId: CallId): void => {
      const row = this.row(callId);
      if (row.ownerId === ownerId && row.end !== undefined) row.isSettled = true;
    };
    const relay = new EventRelay({
      publisher: { publish, holds },
      untilReleased: async () => undefined,
      settle,
      markQueuedPublished: () => undefined,
      logger: silentLogger,
    });
    const outbox: CallOutbox = {
      append: async (call, step, { isUntaken = false, isRecovered = false } = {}) => {
        const through = relay.publishedThrough(call.callId);
        const published = through === undefined ? {} : { publishedThrough: through };
        const stored = this.append(ownerId, call, step, { isUntaken, ...published });
        if (stored === undefined) return 'not owned';
        relay.send(stored, { isRecovered });
        return 'stored';
      },
    };
    const noteLegsGone = (callId: CallId): void => this.row(callId).legs.clear();
    return { outbox, publish, settle, noteLegsGone, holds: (callId) => relay.holds(callId) };
  }

  row(callId: CallId): Row {
    const row = this.#rows.get(callId);
    if (row === undefined) throw new Error('there is no such call');
    return row;
  }

  rows(): readonly Row[] {
    return [...this.#rows.values()];
  }

  endOf(callId: CallId): TerminalEvent | undefined {
    return this.row(callId).end;
  }

  /** Ids of the calls whose end is in SQL. */
  ended(): readonly CallId[] {
    return this.rows().flatMap(({ call, end }) => (end === undefined ? [] : [call.callId]));
  }

  /** Returns the events of a call that SQL holds, in order. */
  timelineOf(callId: CallId): readonly CallEvent[] {
    return inOrder(this.row(callId).events);
  }

  put(...events: readonly CallEvent[]): void {
    for (const event of events) {
      if (!this.stream.some((known) => known.id === event.id)) this.stream.push(event);
    }
  }

  /** Returns the events of a call that are on the stream. */
  eventsOf(callId: CallId): readonly CallEvent[] {
    return this.stream.filter((event) => event.callId === callId);
  }

  /** Makes NATS reachable again, so that waiting publishes continue. */
  resumePublishing(): void {
    this.isPublishing = true;
    for (const resume of this.#waiting.splice(0)) resume();
  }

  async #publish(events: readonly CallEvent[]): Promise<void> {
    for (const event of events) {
      this.published.push(event);
      if (!this.isPublishing) await new Promise<void>((resolve) => this.#waiting.push(resolve));
      this.put(event);
    }
  }
}

/**
 * Whether a call accepts the step. After its end is stored, a call accepts only a repetition of
 * that end, and only until it is settled.
 */
function mayEnd({ end, isSettled }: Row, { ending }: CallStep): boolean {
  if (end === undefined) return true;
  const isSame = [ending?.event, ending?.ifAnswered?.at(-1)].some((event) =>
    isDeepStrictEqual(event, end),
  );
  return isSame && !isSettled;
}

/** Stores the legs of a step, so that recovery can hang them up. */
function leaveLegs(row: Row, step: CallStep): void {
  for (const { legId, leg: stored } of legsOf(row.call.callId, step)) {
    const known = row.legs.get(legId);
    if (stored === undefined) row.legs.delete(legId);
    else if (known?.dialogId === undefined || stored.dialogId !== undefined)
      row.legs.set(legId, stored);
  }
}

/**
 * Stores the events of a step. Does not change an event whose sequence number is already stored.
 */
function storeEvents(row: Row, step: CallStep): readonly CallEvent[] {
  const events = [...step.events, ...endingOf(step, row.answeredAt !== undefined)];
  const known = new Set(row.events.map(({ eventSequence }) => eventSequence));
  row.events.push(...events.filter(({ eventSequence }) => !known.has(eventSequence)));
  row.end ??= events.find(isEnd);
  return events;
}

function endingOf({ ending }: CallStep, isAnswered: boolean): readonly CallEvent[] {
  if (ending === undefined) return [];
  return isAnswered ? (ending.ifAnswered ?? [ending.event]) : [ending.event];
}

function unfinishedOf(row: Row): UnfinishedCall {
  const { call, ownerId, previousOwnerId, legs, ringingAt, answeredAt } = row;
  return {
    ...{ call, events: inOrder(row.events) },
    ownerId: previousOwnerId ?? ownerId ?? '',
    legs: [...legs.values()],
    ...(ringingAt === undefined ? {} : { ringingAt }),
    ...(answeredAt === undefined ? {} : { answeredAt }),
  };
}

function unsettledOf(row: Row) {
  const { call, previousOwnerId, legs, publishedThrough } = row;
  return {
    call,
    events: inOrder(row.events).filter((event) => event.eventSequence > publishedThrough),
    legs: previousOwnerId === undefined ? [] : [...legs.values()],
  };
}

function inOrder(events: readonly CallEvent[]): readonly CallEvent[] {
  return [...events].sort((one, other) => one.eventSequence - other.eventSequence);
}

function isEnd(event: CallEvent): event is TerminalEvent {
  return event.type === 'completed' || event.type === 'failed';
}

/** Lets promises settle. That's enough, because nothing in this world waits for real time. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
