// Starts and watches the recording thread.

import { once } from 'node:events';
import { MessageChannel, type MessagePort, type Worker } from 'node:worker_threads';
import type { Logger } from '../lib/logger.ts';
import { siblingModule, spawnWorker } from '../lib/threads/worker-threads.ts';
import { within } from '../lib/within.ts';
import type {
  FinishFault,
  Leftover,
  RecordingThread,
  SpooledRecording,
  SpoolFault,
} from './recording-thread.ts';
import type {
  FromThread,
  RecordingThreadData,
  ThreadAnswers,
  ThreadRequest,
  ToThread,
} from './thread/thread-messages.ts';

export type RecordingThreadOptions = RecordingThreadData & { readonly logger: Logger };

/** At shutdown, the thread gets this long to finish recordings. The next start finishes others. */
const stopTimeoutMs = 3_000;

type Waiting = {
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: Error) => void;
};

/**
 * Starts the thread when it's first needed, and again if it has died. Recordings that were under
 * way in a thread that died fail, and are left over.
 */
export function createRecordingThread(options: RecordingThreadOptions): RecordingThread {
  return new ThreadHandle(options);
}

class ThreadHandle implements RecordingThread {
  readonly #data: RecordingThreadData;
  readonly #logger: Logger;
  readonly #finishedListeners: ((spooled: SpooledRecording) => void)[] = [];
  readonly #faultListeners: ((fault: SpoolFault) => void)[] = [];
  readonly #waiting = new Map<number, Waiting>();
  #worker: Worker | undefined;
  #generation = 0;
  #nextRequest = 1;
  #stopping: Promise<void> | undefined;

  constructor({ logger, spool, ownerId }: RecordingThreadOptions) {
    this.#data = { spool, ownerId };
    this.#logger = logger;
  }

  get generation(): number {
    return this.#generation;
  }

  portForMediaWorker(): MessagePort {
    const { port1, port2 } = new MessageChannel();
    this.#send({ kind: 'port', port: port2 }, [port2]);
    return port1;
  }

  onFinished(listener: (spooled: SpooledRecording) => void): void {
    this.#finishedListeners.push(listener);
  }

  onFault(listener: (fault: SpoolFault) => void): void {
    this.#faultListeners.push(listener);
  }

  leftovers(): Promise<readonly Leftover[]> {
    return this.#ask({ kind: 'leftovers' });
  }

  finish(folder: string, contentKey?: Uint8Array): Promise<SpooledRecording | FinishFault> {
    return this.#ask({ kind: 'finish', folder, ...(contentKey && { contentKey }) });
  }

  async remove(folder: string): Promise<void> {
    await this.#ask({ kind: 'remove', folder });
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    const worker = this.#worker;
    if (worker === undefined) return;
    const exited = once(worker, 'exit');
    worker.postMessage({ kind: 'stop' } satisfies ToThread);
    await within(exited, stopTimeoutMs);
    await worker.terminate();
  }

  #ask<Kind extends ThreadRequest['kind']>(
    request: Extract<ThreadRequest, { kind: Kind }>,
  ): Promise<ThreadAnswers[Kind]> {
    const id = this.#nextRequest;
    this.#nextRequest += 1;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve: resolve as Waiting['resolve'], reject });
      this.#send({ kind: 'request', id, request });
    });
  }

  #send(message: ToThread, transfer: readonly MessagePort[] = []): void {
    if (this.#stopping !== undefined) {
      if (message.kind === 'request') this.#settle(message.id)?.reject(new Error('is stopping'));
      return;
    }
    this.#worker ??= this.#start();
    this.#worker.postMessage(message, transfer);
  }

  #start(): Worker {
    const url = siblingModule('./thread/recording-worker', import.meta.url);
    const worker = spawnWorker(url, this.#data, { logger: this.#logger, part: 'recording' });
    worker.on('message', (message: FromThread) => this.#receive(message));
    worker.on('error', (error) => this.#logger.error({ err: error }, 'recording thread failed'));
    worker.on('exit', () => this.#onExit());
    // The media workers' ports and the keeper keep the process alive for as long as it's needed.
    worker.unref();
    return worker;
  }

  #onExit(): void {
    this.#worker = undefined;
    this.#generation += 1;
    if (this.#stopping === undefined) this.#logger.error({}, 'recording thread died');
    for (const id of [...this.#waiting.keys()]) {
      this.#settle(id)?.reject(new Error('the recording thread has ended'));
    }
  }

  #receive(message: FromThread): void {
    switch (message.kind) {
      case 'finished':
        for (const listener of this.#finishedListeners) listener(message.spooled);
        return;
      case 'fault': {
        const { callId, fault, detail } = message;
        this.#logger.error({ callId, fault, detail }, 'a call could not be recorded');
        for (const listener of this.#faultListeners) listener({ callId, fault, detail });
        return;
      }
      case 'answer':
        this.#settle(message.id)?.resolve(message.answer);
        return;
      case 'error':
        this.#settle(message.id)?.reject(new Error(message.message));
    }
  }

  #settle(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    return waiting;
  }
}
