// Stores recordings in a thread of their own, which runs while there is something to store.

import { setTimeout as pause } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import { siblingModule, spawnWorker } from '../../lib/threads/worker-threads.ts';
import type { Done, StoreTarget } from './recording-store.ts';
import type { Upload, UploadReply, UploadRequest } from './upload-worker.ts';

export type Uploads = {
  /** @throws Error if the thread dies, or if a file in the spool can't be read */
  put(upload: Upload): Promise<Done>;
  close(): Promise<void>;
};

/** Calls end in waves, so the thread is kept for a while. */
const idleMs = 30_000;
/** A stop doesn't wait longer: the spool keeps what isn't stored. */
const closeTimeoutMs = 500;

type Waiting = {
  readonly resolve: (done: Done) => void;
  readonly reject: (reason: Error) => void;
};

export function createUploads(target: StoreTarget): Uploads {
  return new ThreadedUploads(target);
}

class ThreadedUploads implements Uploads {
  readonly #target: StoreTarget;
  readonly #waiting = new Map<number, Waiting>();
  #worker: Worker | undefined;
  #idle: NodeJS.Timeout | undefined;
  #last = 0;

  constructor(target: StoreTarget) {
    this.#target = target;
  }

  put(upload: Upload): Promise<Done> {
    clearTimeout(this.#idle);
    this.#worker ??= this.#start();
    this.#last += 1;
    const request: UploadRequest = { id: this.#last, upload };
    const done = new Promise<Done>((resolve, reject) => {
      this.#waiting.set(request.id, { resolve, reject });
    });
    this.#worker.postMessage(request);
    return done;
  }

  async close(): Promise<void> {
    clearTimeout(this.#idle);
    const worker = this.#worker;
    this.#worker = undefined;
    const until = performance.now() + closeTimeoutMs;
    while (this.#waiting.size > 0 && performance.now() < until) await pause(10);
    await worker?.terminate();
    this.#abandon(new Error('the gateway stops'));
  }

  #start(): Worker {
    const worker = spawnWorker(siblingModule('./upload-worker', import.meta.url), this.#target);
    worker.on('message', (reply: UploadReply) => this.#onReply(reply));
    worker.on('error', (error) => {
      if (this.#worker === worker) this.#worker = undefined;
      this.#abandon(new Error('the thread that stores recordings died', { cause: error }));
    });
    return worker;
  }

  #onReply(reply: UploadReply): void {
    const waiting = this.#waiting.get(reply.id);
    this.#waiting.delete(reply.id);
    if (this.#waiting.size === 0) {
      this.#idle = setTimeout(() => {
        const worker = this.#worker;
        this.#worker = undefined;
        // Can't fail, because Node resolves it when the thread has exited.
        worker?.terminate().catch(() => undefined);
      }, idleMs);
      this.#idle.unref();
    }
    if ('done' in reply) waiting?.resolve(reply.done);
    else waiting?.reject(new Error(reply.error));
  }

  #abandon(reason: Error): void {
    for (const { reject } of this.#waiting.values()) reject(reason);
    this.#waiting.clear();
  }
}
