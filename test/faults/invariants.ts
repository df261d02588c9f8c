// The invariants that must hold whatever dies. They are checked after the storm, against the
// answers to requests, the records of the phones, the events on the stream and the notifications at
// the receiver. All functions are pure. Each violation is described by a sentence.

import { type Aftermath, add, callIdOf, isTerminal } from './aftermath.ts';
import { hungUpOnce, nobodyLeftUp } from './leg-invariants.ts';
import {
  messagesAreReported,
  noBotLeft,
  playbacksOverOnce,
  streamsOverOnce,
} from './media-invariants.ts';

export function violations(aftermath: Aftermath): readonly string[] {
  return [
    ...endsOnce(aftermath),
    ...neverTwice(aftermath),
    ...refusedAreSilent(aftermath),
    ...wholeOnStream(aftermath),
    ...wholeAtReceiver(aftermath),
    ...nobodyLeftUp(aftermath),
    ...hungUpOnce(aftermath),
    ...transfersOverOnce(aftermath),
    ...noBotLeft(aftermath),
    ...streamsOverOnce(aftermath),
    ...playbacksOverOnce(aftermath),
    ...messagesAreReported(aftermath),
  ];
}

function endsOnce({ accepted, events, notifications }: Aftermath): string[] {
  const published = new Map<string, Set<string>>();
  for (const { event } of events) {
    if (isTerminal(event.type)) add(published, event.callId, event.id);
  }
  const delivered = new Map<string, Set<string>>();
  for (const { body } of notifications) {
    if (isTerminal(body.status)) add(delivered, body.callId, body.eventId);
  }
  return [...accepted.values()].flatMap((callId) => {
    const [events, bodies] = [published.get(callId)?.size ?? 0, delivered.get(callId)?.size ?? 0];
    return [
      ...(events === 1 ? [] : [`${callId}: ${events} terminal events on the stream`]),
      ...(bodies === 1 ? [] : [`${callId}: ${bodies} terminal notifications at the receiver`]),
    ];
  });
}

function neverTwice({ farCalls, ...known }: Aftermath): string[] {
  const byNumber = new Map<string, Set<string>>();
  for (const call of farCalls) add(byNumber, call.number, call.sipCallId);
  return [...byNumber].flatMap(([number, sipCallIds]) =>
    sipCallIds.size === 1 ? [] : [`${callIdOf(known, number)}: ${sipCallIds.size} INVITEs`],
  );
}

function refusedAreSilent({ farCalls, refused }: Aftermath): string[] {
  const rung = new Set(
    farCalls.map(({ number }) => number).filter((number) => refused.has(number)),
  );
  return [...rung].map((number) => `${number}: its request was refused, but its phone rang`);
}

function wholeOnStream({ events }: Aftermath): string[] {
  const { problems, byCall } = gather(
    events.map(({ raw, event }) => ({ raw, id: event.id, callId: event.callId, item: event })),
    'on the stream',
  );
  for (const [callId, events] of byCall) {
    const sorted = events.toSorted((a, b) => a.eventSequence - b.eventSequence);
    const sequences = sorted.map((event) => event.eventSequence);
    if (sequences.some((sequence, index) => sequence !== index + 1)) {
      const story = sorted.map((event) => `${event.eventSequence} ${event.type}`).join(', ');
      problems.push(`${callId}: the stream has ${story}`);
    }
    const last = sorted.at(-1);
    if (last !== undefined && !isTerminal(last.type)) {
      problems.push(`${callId}: ${last.type} is its last event, which is not terminal`);
    }
  }
  return problems;
}

function wholeAtReceiver({ notifications }: Aftermath): string[] {
  const { problems, byCall } = gather(
    notifications.map(({ raw, body }) => ({
      raw,
      id: body.eventId,
      callId: body.callId,
      item: body.sequence,
    })),
    'delivered',
  );
  for (const [callId, sequences] of byCall) {
    // The gateway promises the order of first arrivals.
    if (sequences.some((sequence, index) => sequence !== index + 1)) {
      problems.push(`${callId}: notifications ${sequences.join(' ')}`);
    }
  }
  return problems;
}

type Entry<Item> = {
  readonly raw: string;
  readonly id: string;
  readonly callId: string;
  readonly item: Item;
};

/**
 * Groups the items by call, in the order of first arrival. Keeps each id once, and reports an id
 * with two different bodies.
 */
function gather<Item>(entries: readonly Entry<Item>[], where: string) {
  const bodies = new Map<string, string>();
  const problems: string[] = [];
  const byCall = new Map<string, Item[]>();
  for (const { raw, id, callId, item } of entries) {
    const known = bodies.get(id);
    if (known !== undefined && known !== raw) {
      problems.push(`${id}: two bodies ${where}: ${known} ${raw}`);
    }
    if (known !== undefined) continue;
    bodies.set(id, raw);
    byCall.set(callId, [...(byCall.get(callId) ?? []), item]);
  }
  return { problems, byCall };
}

/**
 * A call has at most one `transfer-completed`. If the process of an answered transfer died, there
 * is no such event, and only `completed` reports the end.
 */
function transfersOverOnce({ events }: Aftermath): string[] {
  const ends = new Map<string, Set<string>>();
  for (const { event } of events) {
    if (event.type === 'transfer-completed') add(ends, event.callId, event.id);
  }
  return [...ends].flatMap(([callId, ids]) =>
    ids.size === 1 ? [] : [`${callId}: ${ids.size} transfers were completed`],
  );
}
