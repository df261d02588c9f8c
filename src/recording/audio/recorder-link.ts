// A media worker's recorders and their common way to the recording thread. What has been posted and
// not yet handled is bounded: when the disk is too slow, audio is dropped, and its place is noted.
// The calls don't wait for the disk.

import type { MessagePort } from 'node:worker_threads';
import type {
  RecordingFault,
  RecordingReport,
  RecordingStart,
} from '../../calls/recording/recording.ts';
import type { CallRecorder, Recorders } from '../../media/recorder-port.ts';
import type {
  FromRecordingThread,
  PartOf,
  RecordingPart,
  ToRecordingThread,
} from '../recording-messages.ts';
import { AudioBlocks } from './audio-blocks.ts';
import { RecorderOfCall } from './call-recorder.ts';

/** This is over 10 s of 250 calls, and a disk recovers from most stalls in less. */
const defaultMaxUnhandledBytes = 64 * 1024 * 1024;
/** What a part counts as, in addition to the block that its audio is in. */
const partBytes = 256;
const ticksPerSecond = 50;
/** Each message costs both threads as much as the audio of several calls. */
const ticksPerMessage = 10;
/** If the spool hasn't accepted a recording by then, `required` calls shouldn't wait any longer. */
const maxBeginTicks = 10 * ticksPerSecond;
/** If the thread hasn't handled anything for this long, the disk is stuck rather than slow. */
const maxUnhandledTicks = 60 * ticksPerSecond;

type Linked = {
  readonly id: number;
  readonly recorder: RecorderOfCall;
  readonly report: (report: RecordingReport) => void;
  readonly startedAt: number;
  hasBegun: boolean;
  isStartReported: boolean;
  beginTicks: number;
  /** Where the audio begins that was dropped last. Undefined if none is missing here. */
  droppedFrom: number | undefined;
};

export class RecorderLink implements Recorders {
  readonly #now: () => number;
  readonly #maxUnhandledBytes: number;
  #port: MessagePort | undefined;
  readonly #linked = new Map<number, Linked>();
  #nextId = 1;
  readonly #blocks = new AudioBlocks();
  #parts: PartOf[] = [];
  /** Whether the parts can't wait for others. */
  #isUrgent = false;
  #ticks = 0;
  #unhandledBytes = 0;
  #unhandledTicks = 0;

  /** `now` returns milliseconds since the epoch. */
  constructor(now: () => number = Date.now, maxUnhandledBytes = defaultMaxUnhandledBytes) {
    this.#now = now;
    this.#maxUnhandledBytes = maxUnhandledBytes;
  }

  connect(port: MessagePort): void {
    this.#disconnect();
    this.#port = port;
    port.on('message', (message: FromRecordingThread) => {
      if (port === this.#port) this.#receive(message);
    });
    port.on('close', () => {
      if (port === this.#port) this.#disconnect();
    });
  }

  readonly create = (
    start: RecordingStart,
    timestamp: number,
    report: (report: RecordingReport) => void,
  ): CallRecorder => {
    const id = this.#nextId;
    this.#nextId += 1;
    const recorder = new RecorderOfCall(
      start,
      timestamp,
      { put: (part) => this.#put(linked, part) },
      (reported) => this.#report(linked, reported),
    );
    const startedAt = this.#now();
    const linked: Linked = {
      ...{ id, recorder, report, startedAt },
      ...{ hasBegun: false, isStartReported: false, beginTicks: 0, droppedFrom: undefined },
    };
    if (this.#port === undefined) {
      recorder.failBecause('thread-failed');
      return recorder;
    }
    this.#linked.set(id, linked);
    this.#add(linked, { kind: 'begin', start, startedAt });
    return recorder;
  };

  tick(): void {
    if (this.#linked.size === 0 && this.#parts.length === 0) return;
    this.#ticks += 1;
    if (this.#isUrgent || this.#ticks % ticksPerMessage === 0) this.#post();
    this.#watch();
  }

  #receive(message: FromRecordingThread): void {
    if (message.kind === 'handled') {
      this.#unhandledBytes -= message.bytes;
      this.#unhandledTicks = 0;
      this.#blocks.giveBack(message.blocks);
      return;
    }
    const linked = this.#linked.get(message.id);
    if (linked === undefined) return;
    if (message.kind === 'failed') {
      this.#linked.delete(message.id);
      linked.recorder.failBecause(message.reason);
      return;
    }
    linked.hasBegun = true;
    this.#reportStart(linked);
  }

  /**
   * A pause may come before the spool has accepted the beginning. It must be reported at once,
   * because digits are masked from then on, and so the start is reported first.
   */
  #report(linked: Linked, report: RecordingReport): void {
    if (report.kind !== 'failed') this.#reportStart(linked);
    linked.report(report);
  }

  #reportStart(linked: Linked): void {
    if (linked.isStartReported) return;
    linked.isStartReported = true;
    linked.report({ kind: 'started', at: linked.startedAt });
  }

  #put(linked: Linked, part: RecordingPart): void {
    if (!this.#linked.has(linked.id)) return;
    if (part.kind === 'audio' && !this.#hasRoomFor(part.audio)) {
      linked.droppedFrom ??= part.at;
      return;
    }
    if (linked.droppedFrom !== undefined) {
      const [at, until] = [linked.droppedFrom, part.at];
      linked.droppedFrom = undefined;
      this.#add(linked, { kind: 'gap', at, until, reason: 'disk-slow' });
    }
    if (part.kind === 'audio') this.#add(linked, this.#blocks.add(part.at, part.audio));
    else this.#add(linked, part);
    if (part.kind === 'end') this.#linked.delete(linked.id);
  }

  #hasRoomFor(audio: Uint8Array): boolean {
    const bytes = this.#blocks.bytesWith(audio) + this.#parts.length * partBytes;
    return this.#unhandledBytes + bytes <= this.#maxUnhandledBytes;
  }

  #add({ id }: Linked, part: PartOf['part']): void {
    this.#parts.push({ id, part });
    if (part.kind !== 'audio') this.#isUrgent = true;
  }

  #post(): void {
    if (this.#parts.length === 0 || this.#port === undefined) return;
    const bytes = this.#blocks.bytes + this.#parts.length * partBytes;
    const blocks = this.#blocks.take();
    const message: ToRecordingThread = { parts: this.#parts, bytes, blocks };
    this.#port.postMessage(
      message,
      blocks.map(({ buffer }) => buffer),
    );
    this.#unhandledBytes += bytes;
    this.#parts = [];
    this.#isUrgent = false;
  }

  #watch(): void {
    this.#unhandledTicks = this.#unhandledBytes === 0 ? 0 : this.#unhandledTicks + 1;
    if (this.#unhandledTicks > maxUnhandledTicks) {
      for (const linked of this.#linked.values()) this.#give(linked, 'disk-slow');
      return;
    }
    for (const linked of this.#linked.values()) {
      if (linked.hasBegun) continue;
      linked.beginTicks += 1;
      if (linked.beginTicks > maxBeginTicks) this.#give(linked, 'disk-slow');
    }
  }

  /** Gives a recording up. What has been posted is still written, if the disk recovers. */
  #give(linked: Linked, reason: RecordingFault): void {
    this.#put(linked, { kind: 'end', at: linked.recorder.sent, end: { incomplete: reason } });
    this.#linked.delete(linked.id);
    linked.recorder.failBecause(reason);
  }

  #disconnect(): void {
    this.#port = undefined;
    this.#parts = [];
    this.#isUrgent = false;
    this.#blocks.giveBack(this.#blocks.take());
    this.#unhandledBytes = 0;
    this.#unhandledTicks = 0;
    const all = [...this.#linked.values()];
    this.#linked.clear();
    for (const { recorder } of all) recorder.failBecause('thread-failed');
  }
}
