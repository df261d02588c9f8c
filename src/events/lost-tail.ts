// Looks for lost events after a connection. If the machine failed, both the gateway and NATS may
// have restarted, and then nobody remembers the stream's last sequence. But if NATS has lost its
// last messages, the last events of the last calls are among them. All events of a settled call are
// compared, because recovery may have published its end after the loss.

import type { CallEvent } from '../calls/contract/call-event.ts';
import { messageIdHeader } from './acknowledged-publishing.ts';
import type { EventConnection } from './connection.ts';
import { numberOfEvent } from './event-index.ts';
import { callSubject, streamNames } from './subjects.ts';

/**
 * @param published events of the last calls that were published, each call's in order
 * @returns the time of the earliest of these events that the stream lacks. Undefined if it has all.
 */
export async function earliestLost(
  { manager, prefix }: EventConnection,
  published: readonly CallEvent[],
): Promise<Date | undefined> {
  const stream = streamNames(prefix).calls;
  const { state } = await manager.streams.info(stream);
  const keptSinceMs = state.first_seq > 1 ? Date.parse(state.first_ts) : 0;
  // Several events of a call may have the same subject, of which NATS finds the last.
  const lastOf = new Map(published.map((event) => [callSubject(prefix, event, event.type), event]));
  const lost: number[] = [];
  for (const [subject, event] of lastOf) {
    const timeMs = Date.parse(event.time);
    // The stream's limits may have removed it.
    if (timeMs < keptSinceMs || (state.messages === 0 && state.first_seq > 1)) continue;
    const stored = await manager.streams.getMessage(stream, { last_by_subj: subject });
    const id = stored?.header.get(messageIdHeader);
    if (id === event.id) continue;
    // A live call may have published a later event meanwhile.
    if (id === undefined || numberOfEvent(id) < event.eventSequence) lost.push(timeMs);
  }
  return lost.length === 0 ? undefined : new Date(Math.min(...lost));
}
