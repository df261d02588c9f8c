// One media worker as the main thread sees it: started, watched, and started again when it dies. Its sessions are told
// that they failed; detection that was under way is closed with `amd_error` and `amd_stopped`, as the grammar demands.

import type { Worker } from 'node:worker_threads';
import type { AmdSettings } from '../calls/call-types.ts';
import { assertNever } from '../calls/call-types.ts';
import { closingAmdEvents } from '../calls/closing-amd-events.ts';
import type { AmdEvent } from '../calls/contract/amd-event.ts';
import type { MediaObserver } from '../calls/ports.ts';
import type { Logger } from '../lib/logger.ts';
import { spawnWorker } from '../lib/spawn-worker.ts';
import type {
  FromMediaWorker,
  MediaStatistics,
  MediaWorkerData,
  ToMediaWorker,
} from './media-messages.ts';
import type { TranscriptionReport } from './transcription-log.ts';

/** Loading the detector takes under a second; a loaded machine may need many times that. */
const startTimeoutMs = 20_000;
/** A worker that does not answer for twice this long is stuck, and its calls with it. */
const answerTimeoutMs = 5_000;
/** At shutdown nobody waits longer than this for a busy worker. */
const flushTimeoutMs = 1_000;
/** A worker that dies at once each time must not take the processor as well. */
const maxRestartDelayMs = 5_000;
const firstRestartDelayMs = 50;

type Entry = {
  readonly observer: MediaObserver;
  port?: number;
  onOpened: ((port: number | undefined) => void) | undefined;
  /** `close` was sent: only what detection still has to say is passed on. */
  closing: boolean;
  /** Detection runs at most once in a session. */
  detection: 'none' | 'over' | { readonly startedMs: number };
};

export class MediaWorkerHandle implements AsyncDisposable {
  readonly #entryUrl: URL;
  readonly #data: MediaWorkerData;
  readonly #logger: Logger;
  readonly #onTranscriptionFailed: (report: TranscriptionReport) => void;
  readonly #entries = new Map<number, Entry>();
  readonly #statisticsWaiting = new Map<
    number,
    (statistics: MediaStatistics | undefined) => void
  >();
  #worker: Worker | undefined;
  #ready = false;
  readonly #readyWaiting = new Set<() => void>();
  #nextId = 1;
  #lastPort: number | undefined;
  #restartDelayMs = firstRestartDelayMs;
  #restartTimer: NodeJS.Timeout | undefined;
  #stopping = false;

  constructor(
    entryUrl: URL,
    data: MediaWorkerData,
    logger: Logger,
    onTranscriptionFailed: (report: TranscriptionReport) => void,
  ) {
    this.#onTranscriptionFailed = onTranscriptionFailed;
    this.#entryUrl = entryUrl;
    this.#data = data;
    this.#logger = logger;
    this.#start();
  }

  get load(): number {
    return this.#entries.size;
  }

  get ready(): boolean {
    return this.#ready;
  }

  /** False when it did not get ready within the start time-out, or is being stopped. */
  async whenReady(): Promise<boolean> {
    if (this.#ready || this.#stopping) return this.#ready;
    await new Promise<void>((resolve) => {
      const settle = (): void => {
        clearTimeout(timer);
        this.#readyWaiting.delete(settle);
        resolve();
      };
      const timer = setTimeout(settle, startTimeoutMs);
      this.#readyWaiting.add(settle);
    });
    return this.#ready;
  }

  /** Undefined: refused (and logged), or the worker died. */
  async open(observer: MediaObserver): Promise<{ id: number; port: number } | undefined> {
    if (!(await this.whenReady())) return undefined;
    const id = this.#nextId;
    this.#nextId += 1;
    const port = await new Promise<number | undefined>((resolve) => {
      this.#entries.set(id, { observer, onOpened: resolve, closing: false, detection: 'none' });
      this.#watchAnswer(id);
      this.#post({ kind: 'open', id });
    });
    return port === undefined ? undefined : { id, port };
  }

  setRemote(message: Extract<ToMediaWorker, { kind: 'remote' }>): void {
    if (this.#isLive(message.id)) this.#post(message);
  }

  startDetection(id: number, settings: AmdSettings): void {
    const entry = this.#entries.get(id);
    if (entry === undefined || entry.closing || entry.detection !== 'none') return;
    entry.detection = { startedMs: performance.now() };
    this.#post({ kind: 'detect', id, settings });
  }

  stopDetection(id: number, reason: string): void {
    if (this.#isLive(id)) this.#post({ kind: 'stop', id, reason });
  }

  stream(message: Extract<ToMediaWorker, { kind: 'stream' | 'stopStream' | 'digit' }>): void {
    if (this.#isLive(message.id)) this.#post(message);
  }

  close(id: number): void {
    const entry = this.#entries.get(id);
    if (entry === undefined || entry.closing) return;
    entry.closing = true;
    this.#post({ kind: 'close', id });
  }

  /** Undefined when the worker does not answer in time. */
  async statistics(timeoutMs = answerTimeoutMs): Promise<MediaStatistics | undefined> {
    if (!this.#ready) return undefined;
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
    this.#stopping = true;
    clearTimeout(this.#restartTimer);
    for (const settle of this.#readyWaiting) settle();
    // Messages are answered in order: once this is, all that stopped detection had to say has been told.
    await this.statistics(flushTimeoutMs);
    await this.#worker?.terminate();
  }

  #isLive(id: number): boolean {
    return this.#entries.get(id)?.closing === false;
  }

  #post(message: ToMediaWorker): void {
    this.#worker?.postMessage(message);
  }

  #start(): void {
    const after = this.#lastPort;
    const data: MediaWorkerData = {
      ...this.#data,
      ...(after === undefined ? {} : { startAfterPort: after }),
    };
    const worker = spawnWorker(this.#entryUrl, data, { logger: this.#logger, part: 'media' });
    this.#worker = worker;
    worker.on('message', (message: FromMediaWorker) => this.#handle(message));
    worker.on('error', (error) => this.#logger.error({ err: error }, 'media worker failed'));
    worker.on('exit', (exitCode) => this.#afterExit(exitCode));
  }

  #afterExit(exitCode: number): void {
    this.#worker = undefined;
    this.#ready = false;
    const failed = [...this.#entries.values()];
    this.#entries.clear();
    for (const settle of [...this.#statisticsWaiting.values()]) settle(undefined);
    if (!this.#stopping) {
      this.#logger.error({ exitCode, sessions: failed.length }, 'media worker died');
      this.#restartTimer = setTimeout(() => this.#start(), this.#restartDelayMs);
      this.#restartDelayMs = Math.min(this.#restartDelayMs * 2, maxRestartDelayMs);
    }
    for (const entry of failed) this.#fail(entry, 'media worker died');
  }

  #fail(entry: Entry, reason: string): void {
    if (entry.onOpened !== undefined) {
      entry.onOpened(undefined);
      return;
    }
    if (this.#stopping) return;
    if (typeof entry.detection === 'object') {
      const elapsedMs = performance.now() - entry.detection.startedMs;
      for (const event of closingAmdEvents('media-failed', elapsedMs)) {
        this.#safely(() => entry.observer.onAmd(event));
      }
    }
    if (!entry.closing) this.#safely(() => entry.observer.onFailed(reason));
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
        this.#becomeReady();
        return;
      case 'opened':
      case 'refused':
        this.#finishOpening(message);
        return;
      case 'amd':
        for (const event of message.events) this.#tellAmd(message.id, event);
        return;
      case 'detectorError':
        this.#logger.error({ reason: message.reason }, 'detector failed');
        return;
      case 'transcriptionFailed':
        this.#onTranscriptionFailed(message);
        return;
      case 'dtmf':
        this.#tellLive(message.id, (observer) =>
          observer.onDtmf(message.digit, message.durationMs),
        );
        return;
      case 'stream':
        this.#tellLive(message.id, (observer) => observer.onStream?.(message.report));
        return;
      case 'streamWarning':
        this.#logger.warn({ warning: message.warning }, 'a bot does not keep to the wire format');
        return;
      case 'inactive':
        this.#tellLive(message.id, (observer) => observer.onInactive());
        return;
      case 'failed':
        this.#failSession(message.id, message.reason);
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

  #becomeReady(): void {
    this.#ready = true;
    this.#restartDelayMs = firstRestartDelayMs;
    for (const settle of this.#readyWaiting) settle();
  }

  #finishOpening(message: Extract<FromMediaWorker, { kind: 'opened' | 'refused' }>): void {
    const entry = this.#entries.get(message.id);
    if (entry === undefined) return;
    const settle = entry.onOpened;
    entry.onOpened = undefined;
    if (message.kind === 'opened') {
      this.#lastPort = message.port;
      settle?.(message.port);
      return;
    }
    this.#entries.delete(message.id);
    this.#logger.warn({ reason: message.reason }, 'no RTP port for a call');
    settle?.(undefined);
  }

  /**
   * Twice the time-out, in two timers: when it was this thread that stood still, the answer is read before the second
   * one runs, and a healthy worker is not blamed.
   */
  #watchAnswer(id: number): void {
    const isWaiting = (): boolean => this.#entries.get(id)?.onOpened !== undefined;
    setTimeout(() => {
      if (!isWaiting()) return;
      setTimeout(() => {
        if (!isWaiting()) return;
        this.#logger.error({}, 'media worker does not answer');
        void this.#worker?.terminate();
      }, answerTimeoutMs).unref();
    }, answerTimeoutMs).unref();
  }

  #tellAmd(id: number, event: AmdEvent): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    if (event.event === 'amd_stopped') entry.detection = 'over';
    this.#safely(() => entry.observer.onAmd(event));
  }

  #tellLive(id: number, tell: (observer: MediaObserver) => void): void {
    const entry = this.#entries.get(id);
    if (entry === undefined || entry.closing) return;
    this.#safely(() => tell(entry.observer));
  }

  #safely(tell: () => void): void {
    try {
      tell();
    } catch (error) {
      this.#logger.error({ err: error }, 'media observer threw');
    }
  }
}
