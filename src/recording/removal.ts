// Deletes recordings from the store: on request, when their time is over, and with everything else
// about a person. The objects go first, so a deletion that fails can be repeated.

import type { Logger } from '../lib/logger.ts';
import type { RecordingObjects, RecordingReads } from '../store/recordings/recording-reads.ts';
import type { Done, RecordingStore, StoreFault } from './store/recording-store.ts';

export type RemovalPorts = {
  readonly reads: RecordingReads;
  readonly store: Pick<RecordingStore, 'remove'>;
  readonly logger: Logger;
};

export type ExpiryResult = {
  readonly deleted: number;
  /** Recordings whose time is over, and that the store didn't delete. */
  readonly undeleted: number;
};

/** A recording goes through at most three states: `finishing`, `storing`, and how it ended. */
const maxTries = 3;
/** After so many failures in a row, the store has a problem, and the next sweep tries again. */
const maxFailures = 10;

export type Removal = {
  /** @param by the id of an app */
  remove(recording: RecordingObjects, by: string): Promise<Done>;
  /** Deletes the recordings whose time is over. */
  expire(stopped: AbortSignal): Promise<ExpiryResult>;
  /** Deletes the recordings of calls to the number. @returns how many, or the store's fault */
  removePerson(accountId: string, number: string): Promise<number | Extract<Done, { ok: false }>>;
};

export function createRemoval({ reads, store, logger }: RemovalPorts): Removal {
  const removeObjects = async (recording: RecordingObjects): Promise<Done> => {
    const { state, audioName, metadataName } = recording;
    // The keeper discards what is on its way to the store. A recording that was given up may have
    // its audio there, without the metadata.
    const isOnItsWay = state === 'finishing' || state === 'storing';
    for (const name of isOnItsWay ? [] : [audioName, metadataName]) {
      const done: Done = name === null ? { ok: true } : await store.remove(name);
      if (!done.ok) return done;
    }
    return { ok: true };
  };
  const remove: Removal['remove'] = async (recording, by) => {
    let current = recording;
    for (let tries = 0; tries < maxTries; tries += 1) {
      const done = await removeObjects(current);
      if (!done.ok) return done;
      // The keeper may have stored the recording meanwhile.
      const changed = await reads.markDeleted(current, by);
      if (changed === undefined) return done;
      current = changed;
    }
    throw new Error('a recording changes while it is deleted');
  };
  const report = async ({ callId }: RecordingObjects, { detail }: StoreFault): Promise<void> => {
    logger.error({ callId, detail }, 'a recording could not be deleted although its time is over');
    await reads.noteDeletionFault(callId, detail);
  };
  return {
    remove,
    async expire(stopped) {
      let deleted = 0;
      let undeleted = 0;
      while (!stopped.aborted && undeleted < maxFailures) {
        const [recording] = await reads.expired(undeleted);
        if (recording === undefined) break;
        const done = await remove(recording, 'retention');
        if (done.ok) deleted += 1;
        else {
          undeleted += 1;
          await report(recording, done.fault);
        }
      }
      if (deleted > 0)
        logger.info({ recordings: deleted }, 'deleted recordings whose time is over');
      return { deleted, undeleted };
    },
    async removePerson(accountId, number) {
      let count = await reads.markSpooled({ accountId, number }, 'person');
      for (;;) {
        const batch = await reads.toNumber(accountId, number);
        if (batch.length === 0) return count;
        for (const recording of batch) {
          const done = await remove(recording, 'person');
          if (!done.ok) return done;
          count += 1;
        }
      }
    },
  };
}
