// One media worker as the main thread sees it. The handle starts the worker, watches it, and
// restarts it if it dies. When a worker dies, each of its sessions reports `failed`. A session in
// which detection was running first reports `amd_error` and `amd_stopped`, because the event
// grammar requires these events.

import type { MessagePort, Worker } from 'node:worker_threads';
import { assertNever } from '../calls/call-types.ts';
import { closingAmdEvents } from '../calls/detection/amd-event.ts';
import type { MediaCommand, MediaEvent, MediaObserver } from '../calls/media.ts';
import type { BridgePhase } from '../calls/transfer/transfer.ts';
import { Changes } from '../lib/changes.ts';
import { inBackground } from '../lib/in-background.ts';
import type { Logger } from '../lib/logger.ts';
import { createRestMemory, wake } from '../lib/threads/thread-rest.ts';
import { spawnWorker } from '../lib/threads/worker-threads.ts';
import type {
  FromMediaWorker,
  MediaStatistics,
  MediaWorkerData,
  ToMediaWorker,
  WorkerWarning,
} from './media-messages.ts';
import type { LateFramesReport } from './playout/late-frames.ts';
import type { RecordingPorts } from './recorder-port.ts';
import type { RemoteMedia } from './sdp.ts';
import type { TranscriptionReport } from './transcription-log.ts';

/**
 * Loading the detector takes less than a second on an idle machine, but many times that under load.
 */
const startTimeoutMs = 20_000;
/**
 * A worker that hasn't responded to `open` after twice this long is stuck, and so are its calls.
 */
const responseTimeoutMs = 5_000;
/** At shutdown, a busy worker gets this long to report its remaining events. */
const flushTimeoutMs = 500;
/**
 * Each restart doubles the delay, up to this limit, because a worker that keeps dying at startup
 * must not eat the CPU.
 */
const maxRestartDelayMs = 5_000;
const firstRestartDelayMs = 50;

/** Receives reports that we log for all workers together. */
export type MediaWorkerListener = {
  readonly onTranscriptionFailed: (report: TranscriptionReport) => void;
  readonly onFramesLate: (report: LateFramesReport) => void;
};

/** A closing session still reports these. */
const lastKinds: ReadonlySet<MediaEvent['kind']> = new Set(['amd', 'envelope', 'recording']);

type Life =
  /** The worker is loading. Until it's ready, requests for sessions have to wait. */
  | { readonly kind: 'starting'; readonly worker: Worker }
  | { readonly kind: 'ready'; readonly worker: Worker }
  /** The worker has died and will be restarted by `timer`. */
  | { readonly kind: 'down'; readonly timer: NodeJS.Timeout }
  /** The handle is being disposed and won't start another worker. */
  | { readonly kind: 'stopping'; readonly worker: Worker | undefined };

type Entry = {
  readonly observer: MediaObserver;
  phase:
    | { readonly kind: 'opening'; readonly settle: (port: number | undefined) => void }
    | { readonly kind: 'open' }
    /**
     * We've sent `close`. From now on, only the last reports of detection, loudness and recording
     * reach the observer.
     */
    | { readonly kind: 'closing' };
  /** State of detection, which runs once, plus once more for each round that a plan starts. */
  detection: 'none' | 'over' | { readonly startedMs: number };
  /** Number of the detection round, starting at 1. */
  round: number;
};

export class MediaWorkerHandle implements AsyncDisposable {
  readonly #entryUrl: URL;
  readonly #data: Omit<MediaWorkerData, 'rest'>;
  readonly #rest = createRestMemory();
  readonly #logger: Logger;
  readonly #listener: MediaWorkerListener;
  readonly #recording: RecordingPorts | undefined;
  /** The generation of the recording thread to which the worker is connected. */
  #recordingGeneration: number | undefined;
  readonly #entries = new Map<number, Entry>();
  readonly #statisticsWaiting = new Map<
    number,
    (statistics: MediaStatistics | undefined) => void
  >();
  #life: Life;
  readonly #lifeChanges = new Changes();
  #nextId = 1;
  #lastPort: number | undefined;
  #restartDelayMs = firstRestartDelayMs;

  constructor(
    entryUrl: URL,
    data: Omit<MediaWorkerData, 'rest'>,
    logger: Logger,
    listener: MediaWorkerListener,
    recording?: RecordingPorts,
  ) {
    this.#listener = listener;
    this.#recording = recording;
    this.#entryUrl = entryUrl;
    this.#data = data;
    this.#logger = logger;
    this.#life = this.#startWorker();
  }

  get load(): number {
    return this.#entries.size;
  }

  get ready(): boolean {
    return this.#life.kind === 'ready';
  }

  /**
   * Waits until the worker is ready, up to the start time-out.
   * @returns false if the worker still isn't ready, or the handle is being disposed
   */
  async whenReady(): Promise<boolean> {
    await this.#lifeChanges.until(
      () => this.#life.kind === 'ready' || this.#life.kind === 'stopping',
      startTimeoutMs,
    );
    return this.ready;
  }

  /**
   * Opens a session.
   * @returns undefined if the worker refuses the session (which we log), dies, or doesn't start in
   * time
   */
  async open(observer: MediaObserver): Promise<{ id: number; port: number } | undefined> {
    if (!(await this.whenReady())) return undefined;
    const id = this.#nextId;
    this.#nextId += 1;
    const port = await new Promise<number | undefined>((resolve) => {
      const phase = { kind: 'opening', settle: resolve } as const;
      this.#entries.set(id, { observer, phase, detection: 'none', round: 1 });
      this.#watchResponse(id);
      this.#post({ kind: 'open', id });
    });
    return port === undefined ? undefined : { id, port };
  }

  setRemote(id: number, remote: RemoteMedia, phase: 'early' | 'answer'): void {
    if (this.#isLive(id)) this.#post({ kind: 'remote', id, remote, phase });
  }

  /**
   * Sends a command to an open session. A second `detect` is ignored, because only plans may start
   * further rounds of detection.
   */
  send(id: number, command: MediaCommand): void {
    const entry = this.#entries.get(id);
    if (entry?.phase.kind !== 'open') return;
    if (command.kind === 'detect') {
      if (entry.detection !== 'none') return;
      entry.detection = { startedMs: performance.now() };
    }
    if (command.kind === 'record' && command.action === 'start') this.#connectRecording();
    this.#post({ kind: 'session', id, command });
  }

  /** Connects the worker to the recording thread, unless it is already connected to it. */
  #connectRecording(): void {
    const recording = this.#recording;
    if (recording === undefined) return;
    if (recording.generation === this.#recordingGeneration) return;
    const port = recording.portForMediaWorker();
    this.#recordingGeneration = recording.generation;
    this.#post({ kind: 'recordingThread', port }, [port]);
  }

  /**
   * Sets what the two legs of a call hear from each other. `id` and `partner` are the legs'
   * sessions.
   */
  bridge(id: number, partner: number, phase: BridgePhase): void {
    if (this.#isLive(id)) this.#post({ kind: 'bridge', id, partner, phase });
  }

  close(id: number): void {
    const entry = this.#entries.get(id);
    if (entry?.phase.kind !== 'open') return;
    entry.phase = { kind: 'closing' };
    this.#post({ kind: 'close', id });
  }

  /** @returns undefined if the worker isn't ready or doesn't respond in time */
  async statistics(): Promise<MediaStatistics | undefined> {
    return this.ready ? await this.#askStatistics(responseTimeoutMs) : undefined;
  }

  #askStatistics(timeoutMs: number): Promise<MediaStatistics | undefined> {
    const request = this.#nextId;
    this.#nextId += 1;
    return new Promise((resolve) => {
      const settle = (statistics: MediaStatistics | undefined): void => {
        clearTimeout(timer);
        this.#statisticsWaiting.delete(request);
        resolve(statistics);
      };
      const timer = setTimeout(() => settle(undefined), timeoutMs);
      this.#statisticsWaiting.set(request, settle);
      this.#post({ kind: 'statistics', request });
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const before = this.#life;
    if (before.kind === 'down') clearTimeout(before.timer);
    const worker = 'worker' in before ? before.worker : undefined;
    this.#enter({ kind: 'stopping', worker });
    // The worker handles messages in order, so by the time it responds to this one, it has also
    // reported the events of all detections that were stopped earlier.
    if (before.kind === 'ready') await this.#askStatistics(flushTimeoutMs);
    await worker?.terminate();
  }

  #enter(life: Life): void {
    this.#life = life;
    this.#lifeChanges.notify();
  }

  #isLive(id: number): boolean {
    return this.#entries.get(id)?.phase.kind === 'open';
  }

  #post(message: ToMediaWorker, transfer: readonly MessagePort[] = []): void {
    if (!('worker' in this.#life)) return;
    this.#life.worker?.postMessage(message, transfer);
    // Nobody waits for the end of a session, so the worker reads it at its next tick.
    if (message.kind !== 'close') wake(this.#rest);
  }

  #startWorker(): Life {
    const after = this.#lastPort;
    const data: MediaWorkerData = {
      ...this.#data,
      rest: this.#rest,
      ...(after === undefined ? {} : { startAfterPort: after }),
    };
    const worker = spawnWorker(this.#entryUrl, data, { logger: this.#logger, part: 'media' });
    worker.on('message', (message: FromMediaWorker) => this.#handle(message));
    worker.on('error', (error) => this.#logger.error({ err: error }, 'media worker failed'));
    worker.on('exit', (exitCode) => this.#onExit(exitCode));
    return { kind: 'starting', worker };
  }

  #onExit(exitCode: number): void {
    const failed = [...this.#entries.values()];
    this.#entries.clear();
    this.#recordingGeneration = undefined;
    for (const settle of [...this.#statisticsWaiting.values()]) settle(undefined);
    if (this.#life.kind === 'stopping') this.#enter({ kind: 'stopping', worker: undefined });
    else {
      this.#logger.error({ exitCode, sessions: failed.length }, 'media worker died');
      const timer = setTimeout(() => this.#enter(this.#startWorker()), this.#restartDelayMs);
      this.#restartDelayMs = Math.min(this.#restartDelayMs * 2, maxRestartDelayMs);
      this.#enter({ kind: 'down', timer });
    }
    for (const entry of failed) this.#fail(entry, 'media worker died');
  }

  #fail(entry: Entry, reason: string): void {
    if (entry.phase.kind === 'opening') {
      entry.phase.settle(undefined);
      return;
    }
    if (this.#life.kind === 'stopping') return;
    if (typeof entry.detection === 'object') {
      const elapsedMs = performance.now() - entry.detection.startedMs;
      for (const event of closingAmdEvents('media-failed', elapsedMs, entry.round)) {
        this.#notify(entry, { kind: 'amd', amd: event });
      }
    }
    if (entry.phase.kind === 'open') this.#notify(entry, { kind: 'failed', reason });
  }

  #failSession(id: number, reason: string): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    this.#entries.delete(id);
    this.#logger.error({ reason }, 'media session failed');
    this.#fail(entry, reason);
  }

  #handle(message: FromMediaWorker): void {
    switch (message.kind) {
      case 'ready':
        this.#onReady();
        return;
      case 'opened':
      case 'refused':
        this.#finishOpening(message);
        return;
      case 'session':
        this.#observe(message.id, message.event);
        return;
      case 'detectorError':
      case 'recorderError':
      case 'transcriptionFailed':
      case 'framesLate':
      case 'streamWarning':
        this.#log(message);
        return;
      case 'closed':
        this.#entries.delete(message.id);
        return;
      case 'statistics':
        this.#statisticsWaiting.get(message.request)?.(message.statistics);
        return;
      default:
        assertNever(message);
    }
  }

  #log(message: WorkerWarning): void {
    switch (message.kind) {
      case 'detectorError':
        this.#logger.error({ reason: message.reason }, 'detector failed');
        return;
      case 'recorderError':
        this.#logger.error({ reason: message.reason }, 'recorder failed');
        return;
      case 'transcriptionFailed':
        this.#listener.onTranscriptionFailed(message);
        return;
      case 'framesLate':
        this.#listener.onFramesLate(message.report);
        return;
      case 'streamWarning':
        this.#logger.warn({ warning: message.warning }, 'a bot violated the wire format');
        return;
      default:
        assertNever(message);
    }
  }

  #onReady(): void {
    if (this.#life.kind !== 'starting') return;
    this.#restartDelayMs = firstRestartDelayMs;
    this.#enter({ kind: 'ready', worker: this.#life.worker });
  }

  #finishOpening(message: Extract<FromMediaWorker, { kind: 'opened' | 'refused' }>): void {
    const entry = this.#entries.get(message.id);
    if (entry?.phase.kind !== 'opening') return;
    const { settle } = entry.phase;
    if (message.kind === 'opened') {
      entry.phase = { kind: 'open' };
      this.#lastPort = message.port;
      settle(message.port);
      return;
    }
    this.#entries.delete(message.id);
    this.#logger.warn({ reason: message.reason }, 'no RTP port for a call');
    settle(undefined);
  }

  /**
   * Terminates the worker if it doesn't respond to `open` within twice the time-out. We run two
   * timers in a row because this thread may have stalled as well. If it has, it reads the response
   * before the second timer fires, so we don't kill a healthy worker.
   */
  #watchResponse(id: number): void {
    const isWaiting = (): boolean => this.#entries.get(id)?.phase.kind === 'opening';
    setTimeout(() => {
      if (!isWaiting()) return;
      setTimeout(() => {
        if (!isWaiting()) return;
        this.#logger.error({}, 'media worker does not respond');
        const ended = 'worker' in this.#life ? this.#life.worker?.terminate() : undefined;
        if (ended !== undefined) inBackground(ended, this.#logger, 'ending a media worker');
      }, responseTimeoutMs).unref();
    }, responseTimeoutMs).unref();
  }

  /**
   * Passes an event to the session's observer. A session that is closing still reports its last
   * detection events, its loudness and the end of its recording.
   */
  #observe(id: number, event: MediaEvent): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    if (event.kind === 'failed') {
      this.#failSession(id, event.reason);
      return;
    }
    if (event.kind === 'amd' && event.amd.event === 'amd_stopped') entry.detection = 'over';
    if (event.kind === 'plan' && event.report.kind === 'armed') {
      entry.detection = { startedMs: performance.now() };
      entry.round = event.report.round;
    }
    const isLast = lastKinds.has(event.kind);
    if (isLast || entry.phase.kind === 'open') this.#notify(entry, event);
  }

  #notify({ observer }: Entry, event: MediaEvent): void {
    try {
      observer.observe(event);
    } catch (error) {
      this.#logger.error({ err: error }, 'media observer threw');
    }
  }
}
