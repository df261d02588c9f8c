// What outlives a process, played in memory: the rows of SQL and the stream. Tests let a process die at any point and
// look at what the next one makes of what is left.

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
  /** As the table has them, by their ids. */
  readonly legs: Map<string, StoredLeg>;
  ringingAt: Date | undefined;
  answeredAt: Date | undefined;
  readonly events: CallEvent[];
  end: TerminalEvent | undefined;
  /** The last event that is known to be on the stream. */
  publishedThrough: number;
  /** All is on the stream, and no far end is left in the call. */
  isSettled: boolean;
};

/** One process: what it appends is stored at once, and published from there. */
export type WorldProcess = {
  readonly outbox: CallOutbox;
  readonly publish: (events: readonly CallEvent[]) => Promise<void>;
  readonly settle: (callId: CallId) => void;
  readonly legsAreOver: (callId: CallId) => void;
  /** Its events are on their way. */
  readonly holds: (callId: CallId) => boolean;
};

export class DialoutWorld {
  readonly #rows = new Map<CallId, Row>();
  /** What `publish` stored, each id once, as JetStream drops what it knows. */
  readonly stream: CallEvent[] = [];
  /** Every publish, repetitions included. */
  readonly published: CallEvent[] = [];
  /** NATS is unreachable while it is false: publishes wait. */
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

  /** As the intake does it: with its first event. No process has taken it. */
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

  /** A process is gone, and this is left of a call of it. */
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

  /** All that is not done with is this process's now. */
  takeOver(ownerId: string): void {
    for (const row of this.#rows.values()) {
      if (row.isSettled || row.ownerId === undefined || row.ownerId === ownerId) continue;
      row.previousOwnerId = row.ownerId;
      row.ownerId = ownerId;
    }
  }

  /** As the statement does it: all or nothing. The events that hold; undefined: the call has ended, or is not this process's. */
  append(
    ownerId: string,
    { callId }: AcceptedCall,
    step: CallStep,
    { isUntaken = false, publishedThrough = 0 } = {},
  ): readonly CallEvent[] | undefined {
    const row = this.row(callId);
    const isOurs = isUntaken ? row.ownerId === undefined : row.ownerId === ownerId;
    if (!isOurs || !mayEnd(row, step)) {
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
    const legsAreOver = (callId: CallId): void => this.row(callId).legs.clear();
    return { outbox, publish, settle, legsAreOver, holds: (callId) => relay.holds(callId) };
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

  /** The calls whose end is in SQL. */
  ended(): readonly CallId[] {
    return this.rows().flatMap(({ call, end }) => (end === undefined ? [] : [call.callId]));
  }

  /** What SQL holds, in order. */
  timelineOf(callId: CallId): readonly CallEvent[] {
    return inOrder(this.row(callId).events);
  }

  put(...events: readonly CallEvent[]): void {
    for (const event of events) {
      if (!this.stream.some((known) => known.id === event.id)) this.stream.push(event);
    }
  }

  /** On the stream. */
  eventsOf(callId: CallId): readonly CallEvent[] {
    return this.stream.filter((event) => event.callId === callId);
  }

  /** NATS is back. */
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

/** An end that stands takes nothing more, but the same again. */
function mayEnd({ end, isSettled }: Row, { ending }: CallStep): boolean {
  if (end === undefined) return true;
  const isSame = [ending?.event, ending?.ifAnswered?.at(-1)].some((event) =>
    isDeepStrictEqual(event, end),
  );
  return isSame && !isSettled;
}

/** It has to be hung up. */
function leaveLegs(row: Row, step: CallStep): void {
  for (const { legId, leg: stored } of legsOf(row.call.callId, step)) {
    const known = row.legs.get(legId);
    if (stored === undefined) row.legs.delete(legId);
    else if (known?.dialogId === undefined || stored.dialogId !== undefined)
      row.legs.set(legId, stored);
  }
}

/** What is known under its number stands. */
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

/** Lets promises settle; nothing in this world waits on real time. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
