// Opens the parts that store recordings, and connects them to the database, NATS and the metrics.

import { readdir } from 'node:fs/promises';
import type { EventOf } from '../calls/contract/call-event.ts';
import type { RecordingPort } from '../calls/ports.ts';
import { isRecordingFault } from '../calls/recording/recording.ts';
import { createRecordingAlertPublisher } from '../events/alerts.ts';
import { publishLateEvent } from '../events/publisher.ts';
import type { RecordingMetric } from '../http/recording-metrics.ts';
import { type Repetition, repeat } from '../lib/repeat.ts';
import { repeatHourly } from '../lib/repeat-hourly.ts';
import { createRecordingPort, openContentKey } from '../recording/keeper/content-keys.ts';
import { Keeper, type KeeperOutcome, type KeeperPorts } from '../recording/keeper/keeper.ts';
import { RecordingAlerts } from '../recording/recording-alerts.ts';
import type { RecordingThread } from '../recording/recording-thread.ts';
import { createStoredRecordings, type StoredRecordings } from '../recording/recordings.ts';
import { createRemoval, type Removal } from '../recording/removal.ts';
import { spoolBytes } from '../recording/spool-size.ts';
import { openRecordingStore } from '../recording/store/open-store.ts';
import { describeTarget } from '../recording/store/recording-store.ts';
import { createUploads } from '../recording/store/uploads.ts';
import { StoreWatch } from '../recording/store-watch.ts';
import type { RecordingStoreFacts } from '../servers/server-facts.ts';
import { publishLateEvents } from '../store/recordings/late-events.ts';
import { RecordingReads } from '../store/recordings/recording-reads.ts';
import { findLostOwners, RecordingRows } from '../store/recordings/recording-rows.ts';
import type { Environment } from './environment.ts';
import type { Events } from './events.ts';
import type { Storage } from './storage.ts';

type Parts = {
  readonly storage: Storage;
  readonly events: Pick<Events, 'connection'>;
  /** Called when a POST about a recording may be owed. */
  readonly onAnnounced: () => void;
  readonly thread: RecordingThread;
};

export type Recording = {
  readonly port: RecordingPort;
  readonly recordings: StoredRecordings;
  readonly removal: Removal;
  /** Counts a recording that failed during its call, and says so on NATS. */
  readonly noteFailure: (event: EventOf<'recording-failed'>) => void;
  metric(): RecordingMetric;
  /** Undefined until the store has been used, if it's the default folder. */
  storeFacts(): RecordingStoreFacts | undefined;
};

const sweepEveryMs = 1_000;
/** How often we look for folders that other processes left, and check the store. */
const lookEveryMs = 60_000;
/** How often we check a store that has failed. A check is one small object. */
const awayCheckEveryMs = 5_000;
/** Events that another process should have announced. */
const announceEveryMs = 30_000;

export function openRecording(environment: Environment, parts: Parts): Recording {
  const { config, clock, logger, closers } = environment;
  const { database } = parts.storage;
  const { store: target, spool } = config.recording;
  const now = () => clock.now();
  const store = openRecordingStore(target);
  const reads = new RecordingReads(database.pool, now);
  const removal = createRemoval({ reads, store, logger });
  const rows = new RecordingRows(database.pool, config.ownerId, now);
  const figures = new Figures();
  const watch = new StoreWatch(store, now, () => keeper.retryNow());
  const announcing = announce(environment, parts, rows);
  const publishAlert = createRecordingAlertPublisher(parts.events.connection);
  const alerts = new RecordingAlerts(publishAlert, now, logger);
  const note = (outcome: KeeperOutcome): void => {
    alerts.note(outcome);
    figures.count(outcome);
  };
  const keeper: Keeper = openKeeper(environment, parts, { store, rows, watch }, (outcome) => {
    note(outcome);
    announcing.wake();
  });
  let lookedAtMs = Number.NEGATIVE_INFINITY;
  const repetitions = [
    announcing,
    repeat({ name: 'recordings', everyMs: sweepEveryMs, logger }, async () => {
      keeper.sweep();
      if (performance.now() - lookedAtMs < lookEveryMs) return;
      lookedAtMs = performance.now();
      // Looking starts the thread, which a laptop that records nothing doesn't need.
      if (await hasEntries(spool)) await keeper.look();
      figures.spoolBytes = await spoolBytes(spool);
      figures.waiting = await rows.figures();
      if (target.kind === 's3' || watch.condition.isKnown) await watch.check();
    }),
    repeat({ name: 'store of recordings', everyMs: awayCheckEveryMs, logger }, async () => {
      if (watch.condition.fault !== undefined) await watch.check();
    }),
    repeatHourly({ name: 'expired recordings', clock, logger }, async (stopped) => {
      const { undeleted } = await removal.expire(stopped);
      figures.undeleted = undeleted;
      await reads.forget(new Date(now().getTime() - config.retention.recordDays * msPerDay));
    }),
  ];
  closers.add('store of recordings', () => store.close());
  closers.add('recordings', async () => {
    await Promise.all(repetitions.map((each) => each.stop()));
    await keeper.stop();
  });
  return {
    port: createRecordingPort(parts.storage.recordingKeys, parts.storage.secrets, logger),
    recordings: createStoredRecordings(reads, store, removal),
    removal,
    noteFailure({ accountId, callId, data: { reason, detail = reason } }) {
      // An announcement that a person didn't hear to the end is no fault.
      if (isRecordingFault(reason))
        note({ kind: 'failed', accountId, callId, reason, detail, attempts: 0 });
    },
    metric: () => figures.metric(keeper.waiting, watch.condition.fault === undefined, now()),
    storeFacts() {
      const { fault, since, isKnown } = watch.condition;
      if (!isKnown && target.kind === 'folder') return undefined;
      return {
        ...{ name: describeTarget(target), waiting: keeper.waiting, isKnown },
        ...(fault === undefined ? {} : { fault: fault.detail }),
        ...(since === undefined ? {} : { since }),
      };
    },
  };
}

/** Appends and publishes the events that follow the end of their call, for all nodes. */
function announce(
  { clock, logger }: Environment,
  { storage, events, onAnnounced }: Parts,
  rows: RecordingRows,
): Repetition {
  const { pool } = storage.database;
  const { connection } = events;
  const options = { name: 'events of recordings', everyMs: sweepEveryMs, logger };
  return repeat({ ...options, maxRestMs: announceEveryMs }, async () => {
    if ((await rows.appendOwed()) > 0) onAnnounced();
    await publishLateEvents(pool, clock.now(), (event) =>
      publishLateEvent(connection, logger, event),
    );
    return await rows.isEventOwed();
  });
}

function openKeeper(
  { config, clock, logger, closers }: Environment,
  { storage, thread, onAnnounced }: Parts,
  { store, rows, watch }: Pick<KeeperPorts, 'rows' | 'store'> & { readonly watch: StoreWatch },
  onOutcome: (outcome: KeeperOutcome) => void,
): Keeper {
  const { database } = storage;
  const now = () => clock.now();
  const uploads = createUploads(config.recording.store);
  closers.add('uploads of recordings', () => uploads.close());
  // A file that can't be finished has no call any more that would report it. The next look tries
  // again.
  thread.onFault(({ callId, fault, detail }) =>
    logger.warn({ callId, fault, detail }, 'a recording could not be written or finished'),
  );
  return new Keeper({
    ...{ thread, rows, store, now, logger, random: Math.random },
    openContentKey: (header) => openContentKey(storage.secrets, header),
    uploads: {
      async put(upload) {
        const done = await uploads.put(upload);
        watch.note(done);
        return done;
      },
    },
    findLostOwners: (ownerIds) => findLostOwners(database.pool, ownerIds),
    ...{ ownerId: config.ownerId, nodeId: config.nodeId },
    retentionDays: config.recording.retentionDays,
    onOutcome: (outcome) => {
      onOutcome(outcome);
      onAnnounced();
    },
  });
}

async function hasEntries(folder: string): Promise<boolean> {
  const names = await readdir(folder).catch(() => []);
  return names.length > 0;
}

const msPerDay = 86_400_000;

/** What the metrics say, apart from what others know now. */
class Figures {
  stored = 0;
  readonly failed = new Map<string, number>();
  undeleted = 0;
  spoolBytes = 0;
  waiting: { readonly oldestAt: Date | null } = { oldestAt: null };

  count(outcome: KeeperOutcome): void {
    if (outcome.kind === 'stored') this.stored += 1;
    if (outcome.kind === 'failed')
      this.failed.set(outcome.reason, (this.failed.get(outcome.reason) ?? 0) + 1);
  }

  metric(waiting: number, isStoreUp: boolean, now: Date): RecordingMetric {
    const { oldestAt } = this.waiting;
    const isWaiting = waiting > 0 && oldestAt !== null;
    const oldestWaitingS = isWaiting ? (now.getTime() - oldestAt.getTime()) / 1_000 : 0;
    const { stored, failed, spoolBytes: bytes, undeleted } = this;
    return { stored, failed, waiting, oldestWaitingS, spoolBytes: bytes, isStoreUp, undeleted };
  }
}
