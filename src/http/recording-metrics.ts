// The metrics of recordings.

import { Counter, Gauge, type Registry } from 'prom-client';
import { recordingFailures } from '../calls/recording/recording.ts';

export type RecordingMetric = {
  readonly stored: number;
  readonly failed: ReadonlyMap<string, number>;
  /** Recordings of this process that are not stored yet. */
  readonly waiting: number;
  readonly oldestWaitingS: number;
  readonly spoolBytes: number;
  readonly isStoreUp: boolean;
  /** Recordings whose time is over, and that could not be deleted. */
  readonly undeleted: number;
};

/** The reasons whose count is 0 at the first scrape, so that the first failure raises an alert. */
const reasons = recordingFailures.filter((reason) => reason !== 'announcement');

/** @returns a function that reads the figures, for each scrape */
export function recordingMetrics(registry: Registry, read: () => RecordingMetric): () => void {
  const registers = [registry];
  const gauge = (name: string, help: string) => new Gauge({ name, help, registers });
  const stored = new Counter({
    ...{ name: 'offhook_recordings_stored_total', help: 'Recordings that were stored', registers },
  });
  const failed = new Counter({
    ...{ name: 'offhook_recordings_failed_total', registers, labelNames: ['reason'] },
    help: 'Recordings that failed during the call, or were given up, by reason',
  });
  const waiting = gauge('offhook_recordings_waiting', 'Recordings that are not stored yet');
  const oldest = gauge(
    'offhook_recordings_oldest_waiting_seconds',
    'How long the oldest recording has waited to be stored',
  );
  const spool = gauge('offhook_recording_spool_bytes', 'Size of the files in RECORDING_SPOOL');
  const up = gauge('offhook_recording_store_up', '1 if the last use of the store succeeded');
  const undeleted = gauge(
    'offhook_recordings_undeleted',
    'Recordings whose time is over, and that could not be deleted',
  );
  return () => {
    const figures = read();
    stored.reset();
    stored.inc(figures.stored);
    failed.reset();
    for (const reason of new Set([...reasons, ...figures.failed.keys()]))
      failed.inc({ reason }, figures.failed.get(reason) ?? 0);
    waiting.set(figures.waiting);
    oldest.set(figures.oldestWaitingS);
    spool.set(figures.spoolBytes);
    up.set(figures.isStoreUp ? 1 : 0);
    undeleted.set(figures.undeleted);
  };
}
