// Deletes what is stored about a person: in the database, on NATS, and in the store of recordings.

import { type RemovedMessages, removeCallMessages } from '../events/call-removal.ts';
import type { EventConnection } from '../events/connection.ts';
import { ProblemError } from '../http/problem.ts';
import type { Removal } from '../recording/removal.ts';
import type {
  Counts,
  PersonRemoval,
  RemovableCall,
  RemovedPerson,
} from '../store/rules/person-removal.ts';

type Persons = {
  remove(accountId: string, number: string): Promise<RemovedPerson>;
};

export function createPersons(
  stored: PersonRemoval,
  events: Pick<EventConnection, 'prefix' | 'manager'>,
  recordings: Pick<Removal, 'removePerson'>,
): Persons {
  const removeElsewhere = async (call: RemovableCall): Promise<RemovedMessages> => {
    try {
      return await removeCallMessages(events, call);
    } catch (cause) {
      throw natsAway(cause);
    }
  };
  return {
    async remove(accountId, number) {
      const calls = await stored.countUnsettled(accountId, number);
      if (calls > 0) return { kind: 'in-use', calls };
      const removed: Record<string, number> = {};
      const add = (counts: Counts): void => {
        for (const [what, count] of Object.entries(counts)) {
          removed[what] = (removed[what] ?? 0) + count;
        }
      };
      // Recordings come first: the records of calls know the number longer than the calls do.
      const recorded = await recordings.removePerson(accountId, number);
      if (typeof recorded !== 'number') throw storeAway(recorded.fault.detail);
      add({ recordings: recorded });
      for (;;) {
        const batch = await stored.findSettled(accountId, number);
        if (batch.length === 0) break;
        // NATS comes first: its messages are found by the calls' ids.
        for (const call of batch) add(await removeElsewhere(call));
        add(await stored.remove(batch));
      }
      add(await stored.forgetNumber(accountId, number));
      return { kind: 'removed', removed, kept: await stored.countKept(accountId, number) };
    },
  };
}

function storeAway(fault: string): ProblemError {
  const detail =
    'The store of recordings does not respond as it should, so the removal is not complete. Repeat the request.';
  return new ProblemError('unavailable', detail, { retryAfterS: 30, cause: new Error(fault) });
}

function natsAway(cause: unknown): ProblemError {
  const detail = 'NATS is unreachable, so the removal is not complete. Repeat the request.';
  return new ProblemError('unavailable', detail, { retryAfterS: 5, cause });
}
