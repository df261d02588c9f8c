// What the recording thread does: it writes the recordings of all media workers, and finishes those
// that have ended, one at a time. For the keeper, it lists, finishes and removes what was left
// over.

import { readdirSync, rmdirSync, rmSync, statSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import type { MessagePort } from 'node:worker_threads';
import type { RecordingFault } from '../../calls/recording/recording.ts';
import type { FromRecordingThread, ToRecordingThread } from '../recording-messages.ts';
import type { FinishFault, Leftover, SpooledRecording } from '../recording-thread.ts';
import { finishing, readFinished, readHeader } from './finishing.ts';
import { type EndedRecording, PortRecordings } from './port-recordings.ts';

export type RecordingsListener = {
  onFinished(spooled: SpooledRecording): void;
  onFault(callId: string, fault: RecordingFault, detail: string): void;
};

export class Recordings {
  readonly #spool: string;
  readonly #ownerId: string;
  readonly #listener: RecordingsListener;
  readonly #ports = new Map<MessagePort, PortRecordings>();
  /** Folders that are being recorded into, or wait to be finished, or are being finished. */
  readonly #busy = new Set<string>();
  /** Resolves once everything that has been queued so far is finished. */
  #finished: Promise<unknown> = Promise.resolve();

  constructor(spool: string, ownerId: string, listener: RecordingsListener) {
    this.#spool = spool;
    this.#ownerId = ownerId;
    this.#listener = listener;
  }

  connect(port: MessagePort): void {
    const recordings = new PortRecordings(this.#spool, this.#ownerId, {
      post: (message) => port.postMessage(message, transferOf(message)),
      onBegun: (folder) => this.#busy.add(folder),
      onEnded: (recording) => {
        this.#finishEnded(recording).catch(crash);
      },
      onFault: (callId, fault, detail) => this.#listener.onFault(callId, fault, detail),
    });
    this.#ports.set(port, recordings);
    port.on('message', (message: ToRecordingThread) => recordings.receive(message));
    port.on('close', () => {
      this.#ports.delete(port);
      recordings.close();
    });
  }

  /** Returns the folders that nobody in this thread is working on. */
  leftovers(): readonly Leftover[] {
    return foldersIn(this.#spool)
      .flatMap((owner) => foldersIn(owner))
      .filter((folder) => !this.#busy.has(folder))
      .flatMap((folder) => leftoverIn(folder));
  }

  async finish(
    folder: string,
    contentKey: Uint8Array | undefined,
  ): Promise<SpooledRecording | FinishFault> {
    this.#checkInside(folder);
    if (this.#busy.has(folder)) {
      return { fault: 'spool-unusable', detail: 'the recording is still being written' };
    }
    this.#busy.add(folder);
    return await this.#queueFinishing(folder, contentKey);
  }

  remove(folder: string): void {
    this.#checkInside(folder);
    rmSync(folder, { recursive: true, force: true });
    try {
      rmdirSync(dirname(folder));
    } catch {
      // The owner has other recordings.
    }
  }

  /** Finishes what has ended. */
  async stop(): Promise<void> {
    await this.#finished;
  }

  async #finishEnded({ folder, callId, contentKey }: EndedRecording): Promise<void> {
    const result = await this.#queueFinishing(folder, contentKey);
    if ('fault' in result) this.#listener.onFault(callId, result.fault, result.detail);
    else this.#listener.onFinished(result);
  }

  /** Only one recording is finished at a time, because the disk is the same for all. */
  #queueFinishing(
    folder: string,
    contentKey: Uint8Array | undefined,
  ): Promise<SpooledRecording | FinishFault> {
    const result = this.#finished.then(() => runInSteps(finishing(folder, contentKey)));
    const done = result.finally(() => this.#busy.delete(folder));
    this.#finished = done;
    return done;
  }

  /** @throws Error if the folder isn't a recording's folder in the spool */
  #checkInside(folder: string): void {
    const parts = relative(this.#spool, folder).split(sep);
    if (parts.length !== 2 || parts.some((part) => part === '..' || part === '')) {
      throw new Error('the folder isn’t a recording in the spool');
    }
  }
}

function transferOf(message: FromRecordingThread): readonly ArrayBuffer[] {
  return message.kind === 'handled' ? message.blocks.map(({ buffer }) => buffer) : [];
}

/** Between the steps, the thread handles its messages. */
async function runInSteps<Result>(steps: Generator<void, Result>): Promise<Result> {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function leftoverIn(folder: string): readonly Leftover[] {
  try {
    const changedAt = changeTime(folder);
    const header = readHeader(folder);
    if (typeof header === 'string') {
      return [{ folder, changedAt, state: 'unreadable', reason: header }];
    }
    const spooled = readFinished(folder, header);
    return spooled === undefined
      ? [{ folder, changedAt, state: 'unfinished', header }]
      : [{ folder, changedAt, state: 'finished', header, spooled }];
  } catch (error) {
    // Another node has just removed it.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

function changeTime(folder: string): number {
  const names = readdirSync(folder);
  const times = names.map((name) => statSync(join(folder, name)).mtimeMs);
  return Math.max(statSync(folder).mtimeMs, ...times);
}

function foldersIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => join(folder, entry.name));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

/** Ends the thread, because an error that nobody expected is a mistake of ours. */
export function crash(error: unknown): never {
  throw error;
}
