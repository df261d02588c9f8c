// Reads a call's events from the stream. If the database has been restored from a backup, it may
// lack events that are on the stream, and recovery needs them to continue the call's sequences.

import type { StoredMsg } from '@nats-io/jetstream';
import { type CallEvent, callEventTypes } from '../calls/contract/call-event.ts';
import type { CallIdentity } from '../calls/contract/identity.ts';
import { parsePublishedEvent } from '../calls/contract/published-event.ts';
import { messageIdHeader } from './acknowledged-publishing.ts';
import type { EventConnection } from './connection.ts';
import { callSubject, streamNames } from './subjects.ts';

/**
 * We don't read more events than this per type, so a broken stream can't keep us busy forever. Even
 * a 2 h call with a digit every second has fewer events.
 */
const maxEventsOfCall = 10_000;

/**
 * Returns the call's events in stream order, i.e. all `amd` and `dtmf` events, and the last event
 * of each other type. Events older than the stream's retention are missing.
 */
export async function eventsOfCall(
  connection: EventConnection,
  identity: CallIdentity,
): Promise<readonly CallEvent[]> {
  const { prefix, manager } = connection;
  const stream = streamNames(prefix).calls;
  // The server uses an index for exact subjects, but would read the whole stream for a wildcard.
  const subjects = callEventTypes.map((type) => callSubject(prefix, identity, type));
  const last = await Promise.all(
    subjects.map((subject) => manager.streams.getMessage(stream, { last_by_subj: subject })),
  );
  const known = last.filter((message) => message !== null);
  if (known.length === 0) return [];
  const stored = new Map(known.map((message) => [message.seq, message]));
  // Any repeated `amd` and `dtmf` events come after the first event we found.
  const first = Math.min(...stored.keys());
  for (const message of known) {
    if (!/\.(amd|dtmf)$/.test(message.subject)) continue;
    await readSubject(connection, stream, message, first, stored);
  }
  const events: CallEvent[] = [];
  for (const message of [...stored.values()].sort((a, b) => a.seq - b.seq)) {
    const id = message.header.get(messageIdHeader);
    const parsed = parsePublishedEvent(message.string(), id, identity);
    if (parsed.ok) events.push(parsed.event);
  }
  return events;
}

async function readSubject(
  connection: EventConnection,
  stream: string,
  last: StoredMsg,
  first: number,
  stored: Map<number, StoredMsg>,
): Promise<void> {
  let sequence = first;
  for (let read = 0; read < maxEventsOfCall; read += 1) {
    const next = await connection.manager.direct.getMessage(stream, {
      seq: sequence,
      next_by_subj: last.subject,
    });
    if (next === null) return;
    stored.set(next.seq, next);
    if (next.seq >= last.seq) return;
    sequence = next.seq + 1;
  }
}
