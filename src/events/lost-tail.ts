// Looks for lost events after a start. If the machine failed, both the gateway and NATS may have
// restarted, and then nobody remembers the stream's last sequence. But if NATS has lost its last
// messages, the ends of the last calls are among them.

import type { CallEvent } from '../calls/contract/call-event.ts';
import type { EventConnection } from './connection.ts';
import { callSubject, streamNames } from './subjects.ts';

/**
 * @param ends the last events of the calls that were settled last
 * @returns the time of the earliest of these events that the stream lacks. Undefined if it has all.
 */
export async function earliestLost(
  { manager, prefix }: EventConnection,
  ends: readonly CallEvent[],
): Promise<Date | undefined> {
  const stream = streamNames(prefix).calls;
  const { state } = await manager.streams.info(stream);
  const keptSinceMs = state.first_seq > 1 ? Date.parse(state.first_ts) : 0;
  const lost: number[] = [];
  for (const end of ends) {
    const timeMs = Date.parse(end.time);
    // The stream's limits may have removed it.
    if (timeMs < keptSinceMs || (state.messages === 0 && state.first_seq > 1)) continue;
    const subject = callSubject(prefix, end, end.type);
    const stored = await manager.streams.getMessage(stream, { last_by_subj: subject });
    if (stored === null) lost.push(timeMs);
  }
  return lost.length === 0 ? undefined : new Date(Math.min(...lost));
}
