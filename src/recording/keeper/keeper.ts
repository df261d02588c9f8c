// Brings each recording from the spool to the store, exactly once, and says so. A recording goes
// through these steps, and a process may die between any two of them:
//
// 1. claim      The row is written, or claimed. Only the process that has the claim goes on.
// 2. finish     Only what a lost process left: its segments become one file, which is incomplete.
// 3. note       The row says what the file is. Its state is `storing`.
// 4. store      The file and its metadata are stored. Repeated after growing pauses, for 24 h.
// 5. settle     The row says `stored` or `failed`, and the call gets its event, in one transaction.
// 6. remove     The folder in the spool is removed. A recording that failed stays there until it
//               expires, so that an operator can save it.
//
// Whoever finds the folder afterwards begins again with step 1. A row that is settled ends there,
// so nothing is announced twice. The event is published by `publishLateEvents`, from the row.

import { setTimeout as pause } from 'node:timers/promises';
import type { RecordingFailure } from '../../calls/recording/recording.ts';
import { inBackground } from '../../lib/in-background.ts';
import type { Logger } from '../../lib/logger.ts';
import type {
  ClaimableRecording,
  RecordingRow,
  RecordingRows,
} from '../../store/recordings/recording-rows.ts';
import type { Leftover, RecordingThread, SpooledRecording } from '../recording-thread.ts';
import { type Done, objectNames, type StoreFault } from '../store/recording-store.ts';
import type { Uploads } from '../store/uploads.ts';
import type { SpoolHeader } from '../thread/spool-header.ts';
import { giveUpAfterMs, retryPauseMs } from './retries.ts';

export type KeeperPorts = {
  readonly thread: Pick<RecordingThread, 'leftovers' | 'finish' | 'remove' | 'onFinished'>;
  readonly uploads: Pick<Uploads, 'put'>;
  readonly store: { remove(name: string): Promise<Done>; locationOf(name: string): string };
  readonly rows: RecordingRows;
  /** Returns which of these processes are gone, and since when if that is known. */
  readonly findLostOwners: (
    ownerIds: readonly string[],
  ) => Promise<ReadonlyMap<string, Date | undefined>>;
  /** @throws Error if `SECRETS_KEY` doesn't open it */
  readonly openContentKey: (header: SpoolHeader) => Uint8Array;
  readonly ownerId: string;
  readonly nodeId: string;
  readonly retentionDays: number;
  readonly now: () => Date;
  readonly random: () => number;
  readonly onOutcome: (outcome: KeeperOutcome) => void;
  readonly logger: Logger;
};

export type KeeperOutcome =
  | { readonly kind: 'stored'; readonly accountId: string; readonly callId: string }
  | {
      readonly kind: 'failed' | 'waiting';
      readonly accountId: string;
      readonly callId: string;
      readonly reason: RecordingFailure;
      readonly detail: string;
      readonly attempts: number;
    };

type Job = {
  readonly recording: ClaimableRecording;
  readonly folder: string;
  readonly header: SpoolHeader | undefined;
  spooled: SpooledRecording | undefined;
  dueAt: number;
  /** Attempts of this process that failed before there was a row, e.g. without a database. */
  failures: number;
};

/** Uploads share the machine's line, and each holds up to 8 MiB in memory. */
const maxRunning = 3;
/**
 * The jobs that one process keeps in memory. Folders beyond that wait in the spool, and are found
 * by a later look.
 */
const maxJobs = 10_000;
/** How often a running job renews its claim, which lasts 5 min. */
const renewEveryMs = 60_000;
/** Another process of this node, or of another one, works on it. */
const claimedElsewherePauseMs = 60_000;
/** Another node's folder is left to that node's next start for this long. */
const lostForMs = 10 * 60_000;
/** This process's own thread may still be finishing such a folder. */
const ownUnfinishedAfterMs = 30_000;

export class Keeper {
  readonly #ports: KeeperPorts;
  /** By folder. */
  readonly #jobs = new Map<string, Job>();
  readonly #running = new Map<string, Promise<void>>();
  readonly #unreadable = new Set<string>();
  readonly #stopped = new AbortController();

  constructor(ports: KeeperPorts) {
    this.#ports = ports;
    ports.thread.onFinished((spooled) => this.take(spooled));
  }

  /** The recordings that this process knows and that aren't stored. */
  get waiting(): number {
    return this.#jobs.size;
  }

  /** Takes over a recording that has become one file. */
  take(spooled: SpooledRecording): void {
    this.#add(spooled.folder, claimableOf(spooled), { spooled, header: undefined });
    this.#startDue();
  }

  /** Looks for folders that processes left, including earlier ones of this node. */
  async look(): Promise<void> {
    const leftovers = await this.#ports.thread.leftovers();
    const readable = leftovers.flatMap((left) => (left.state === 'unreadable' ? [] : [left]));
    for (const left of leftovers) if (left.state === 'unreadable') this.#noteUnreadable(left);
    const { ownerId } = this.#ports;
    const others = [...new Set(readable.map(({ header }) => header.ownerId))].filter(
      (owner) => owner !== ownerId,
    );
    const lost = others.length === 0 ? new Map() : await this.#ports.findLostOwners(others);
    for (const left of readable) {
      if (!this.#mayTake(left, lost)) continue;
      const { header, folder } = left;
      const spooled = left.state === 'finished' ? left.spooled : undefined;
      const startedAt = new Date(header.startedAt);
      const keyName = header.encryption?.keyName;
      this.#add(folder, { ...header, startedAt, keyName }, { header, spooled });
    }
    this.#startDue();
  }

  /** Starts the jobs that are due. Call it every second. */
  sweep(): void {
    this.#startDue();
  }

  /** Makes all jobs due, e.g. because the store works again. */
  retryNow(): void {
    const now = this.#ports.now().getTime();
    for (const job of this.#jobs.values()) job.dueAt = Math.min(job.dueAt, now);
    this.#startDue();
  }

  /** Waits until nothing is running, and everything else has to wait. */
  async settled(): Promise<void> {
    while (this.#running.size > 0) await Promise.allSettled(this.#running.values());
  }

  /** Waits for what is running. Everything else stays in the spool. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await Promise.allSettled(this.#running.values());
  }

  #mayTake(
    { header: { ownerId }, state, changedAt }: Exclude<Leftover, { readonly state: 'unreadable' }>,
    lost: ReadonlyMap<string, Date | undefined>,
  ): boolean {
    const now = this.#ports.now().getTime();
    if (ownerId === this.#ports.ownerId)
      return state === 'finished' || now - changedAt >= ownUnfinishedAfterMs;
    if (!lost.has(ownerId)) return false;
    if (ownerId.startsWith(`${this.#ports.nodeId}/`)) return true;
    return now - (lost.get(ownerId)?.getTime() ?? changedAt) >= lostForMs;
  }

  #noteUnreadable({ folder, reason }: Extract<Leftover, { readonly state: 'unreadable' }>): void {
    if (this.#unreadable.has(folder) || this.#unreadable.size >= maxJobs) return;
    this.#unreadable.add(folder);
    this.#ports.logger.error({ folder, reason }, 'a folder in the spool of recordings is damaged');
  }

  #add(folder: string, recording: ClaimableRecording, what: Pick<Job, 'spooled' | 'header'>): void {
    if (this.#jobs.has(folder)) return;
    if (this.#jobs.size >= maxJobs) {
      this.#ports.logger.warn(
        { jobs: maxJobs },
        'too many recordings wait: more stay in the spool',
      );
      return;
    }
    this.#jobs.set(folder, { ...what, folder, recording, dueAt: 0, failures: 0 });
  }

  #startDue(): void {
    if (this.#stopped.signal.aborted) return;
    const now = this.#ports.now().getTime();
    for (const [folder, job] of this.#jobs) {
      if (this.#running.size >= maxRunning) return;
      if (job.dueAt > now || this.#running.has(folder)) continue;
      const run = this.#run(job).finally(() => {
        this.#running.delete(folder);
        this.#startDue();
      });
      this.#running.set(folder, run);
      inBackground(run, this.#ports.logger, 'storing a recording');
    }
  }

  async #run(job: Job): Promise<void> {
    const renewing = new AbortController();
    const { callId } = job.recording;
    const renewed = this.#renew(callId, renewing.signal);
    try {
      await this.#advance(job);
    } catch (error) {
      // The database is away, or the disk. The next attempt begins again with the first step.
      job.failures += 1;
      job.dueAt = this.#nextAttemptAt(job.failures).getTime();
      this.#ports.logger.warn(
        { err: error, callId },
        'a recording is not stored yet, trying again',
      );
    } finally {
      renewing.abort();
      await renewed;
    }
  }

  async #renew(callId: string, signal: AbortSignal): Promise<void> {
    for (;;) {
      const isOver = await pause(renewEveryMs, false, { signal, ref: false }).catch(() => true);
      if (isOver) return;
      await this.#ports.rows
        .renewClaim(callId)
        .catch((err: unknown) =>
          this.#ports.logger.warn({ err, callId }, 'the claim of a recording was not renewed'),
        );
    }
  }

  async #advance(job: Job): Promise<void> {
    const { rows } = this.#ports;
    const { row, isClaimed } = await rows.claim(job.recording);
    if (!isClaimed) return await this.#leave(job, row);
    if (row.deletedAt !== null) return await this.#discard(job, row);
    const spooled = await this.#finished(job, row);
    if (spooled === undefined) return;
    const names = objectNames({
      ...{ accountId: row.accountId, callId: row.callId },
      ...{ startedAt: new Date(spooled.startedAt), isEncrypted: spooled.keyName !== undefined },
    });
    const isNoted =
      row.state === 'storing' ||
      (await rows.noteFinished(
        row.callId,
        {
          ...{ durationMs: spooled.durationMs, pausedMs: spooled.pausedMs, bytes: spooled.bytes },
          ...{ sha256: spooled.sha256, audioName: names.audio, metadataName: names.metadata },
          location: this.#ports.store.locationOf(names.audio),
          isIncomplete: spooled.incomplete,
        },
        this.#ports.retentionDays,
      ));
    if (!isNoted) return this.#postpone(job);
    const contentType = spooled.keyName === undefined ? 'audio/wav' : 'application/octet-stream';
    const done = await this.#ports.uploads.put({
      audio: { path: `${job.folder}/${spooled.fileName}`, name: names.audio, contentType },
      metadata: { path: `${job.folder}/${spooled.metadataName}`, name: names.metadata },
    });
    if (done.ok) await this.#onStored(job, row);
    else await this.#onFault(job, row, reasonOf(done.fault), done.fault.detail);
  }

  /** Makes one file of segments. @returns undefined if that isn't possible now */
  async #finished(job: Job, row: RecordingRow): Promise<SpooledRecording | undefined> {
    if (job.spooled !== undefined) return job.spooled;
    const { header, folder } = job;
    let contentKey: Uint8Array | undefined;
    try {
      if (header?.encryption !== undefined) contentKey = this.#ports.openContentKey(header);
    } catch (error) {
      const detail = error instanceof Error ? error.message : 'the content key does not open';
      await this.#onFault(job, row, 'key', detail);
      return undefined;
    }
    const finished = await this.#ports.thread.finish(folder, contentKey);
    if ('fault' in finished) {
      await this.#onFault(job, row, finished.fault, finished.detail);
      return undefined;
    }
    job.spooled = finished;
    return finished;
  }

  async #onStored(job: Job, { callId, accountId }: RecordingRow): Promise<void> {
    const { rows, thread, onOutcome } = this.#ports;
    if (!(await rows.settle(callId, { state: 'stored' }))) return this.#postpone(job);
    onOutcome({ kind: 'stored', accountId, callId });
    await thread.remove(job.folder);
    this.#jobs.delete(job.folder);
  }

  async #onFault(
    job: Job,
    { callId, accountId, createdAt, attempts }: RecordingRow,
    reason: RecordingFailure,
    detail: string,
  ): Promise<void> {
    const { rows, now, logger, onOutcome } = this.#ports;
    const what = { accountId, callId, reason, detail, attempts: attempts + 1 };
    const lastAttemptAt = createdAt.getTime() + giveUpAfterMs;
    if (now().getTime() < lastAttemptAt) {
      const nextAttemptAt = this.#nextAttemptAt(attempts + 1, lastAttemptAt);
      await rows.noteFault(callId, { reason, detail }, nextAttemptAt);
      job.dueAt = nextAttemptAt.getTime();
      logger.warn({ callId, reason, detail, nextAttemptAt }, 'a recording could not be stored');
      onOutcome({ kind: 'waiting', ...what });
      return;
    }
    if (!(await rows.settle(callId, { state: 'failed', reason, detail })))
      return this.#postpone(job);
    logger.error({ callId, reason, detail, folder: job.folder }, 'a recording was given up');
    onOutcome({ kind: 'failed', ...what });
    this.#jobs.delete(job.folder);
  }

  /** Leaves a recording that this process may not store. */
  async #leave(job: Job, row: RecordingRow): Promise<void> {
    const { settledAt, expiresAt, state, deletedAt } = row;
    if (settledAt === null) return this.#postpone(job);
    const isExpired = expiresAt === null || expiresAt <= this.#ports.now();
    if (state === 'stored' || deletedAt !== null || isExpired)
      await this.#ports.thread.remove(job.folder);
    this.#jobs.delete(job.folder);
  }

  /** Discards a recording that was deleted before it was stored. */
  async #discard(job: Job, { audioName, metadataName }: RecordingRow): Promise<void> {
    const { rows, thread, store } = this.#ports;
    for (const name of [audioName, metadataName]) {
      const done: Done = name === null ? { ok: true } : await store.remove(name);
      if (!done.ok) throw new Error(`a deleted recording is still stored: ${done.fault.detail}`);
    }
    await thread.remove(job.folder);
    await rows.settleDeleted(job.recording.callId);
    this.#jobs.delete(job.folder);
  }

  #postpone(job: Job): void {
    job.dueAt = this.#ports.now().getTime() + claimedElsewherePauseMs;
  }

  #nextAttemptAt(failures: number, notAfter = Number.POSITIVE_INFINITY): Date {
    const { now, random } = this.#ports;
    return new Date(Math.min(now().getTime() + retryPauseMs(failures, random()), notAfter));
  }
}

function claimableOf(spooled: SpooledRecording): ClaimableRecording {
  const { callId, accountId, botId, ownerId, startedAt, keyName } = spooled;
  return { callId, accountId, botId, ownerId, keyName, startedAt: new Date(startedAt) };
}

/** A slow store is one that can't be reached, as far as the call's events say. */
function reasonOf({ kind }: StoreFault): RecordingFailure {
  switch (kind) {
    case 'refused':
      return 'store-refused';
    case 'full':
      return 'store-full';
    case 'unreachable':
    case 'slow':
      return 'store-unreachable';
  }
}
