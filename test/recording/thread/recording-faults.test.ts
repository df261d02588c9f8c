// What a recording keeps when the disk is full or stuck, when a thread is killed, and when its
// segments are damaged.

import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads';
import pino from 'pino';
import { describe, expect, test } from 'vitest';
import { callIdSchema } from '../../../src/calls/contract/identity.ts';
import type { RecordingReport } from '../../../src/calls/recording/recording.ts';
import { spawnWorker } from '../../../src/lib/threads/worker-threads.ts';
import { RecorderLink } from '../../../src/recording/audio/recorder-link.ts';
import type { ToRecordingThread } from '../../../src/recording/recording-messages.ts';
import type { SpooledRecording } from '../../../src/recording/recording-thread.ts';
import { PortRecordings } from '../../../src/recording/thread/port-recordings.ts';
import { SpoolReader } from '../../../src/recording/thread/spool-reader.ts';
import { spoolKeyOf } from '../../../src/recording/thread/spool-records.ts';
import { SpoolWriter } from '../../../src/recording/thread/spool-writer.ts';
import { timelineOf } from '../../../src/recording/thread/timeline.ts';
import { createRecordingThread } from '../../../src/recording/thread-handle.ts';
import { seededRandom } from '../../media/support/random.ts';
import { eventually } from '../../support/eventually.ts';
import { forEachTest } from '../../support/opened.ts';
import { channelOf, startOf } from '../support/recorded-session.ts';

const run = promisify(execFile);
const ownerId = 'node-1';

class Spool {
  readonly folder = mkdtempSync(join(tmpdir(), 'offhook-recording-faults-'));
  readonly thread = createRecordingThread({
    ...{ spool: this.folder, ownerId, logger: pino({ level: 'silent' }) },
  });
  readonly finished: SpooledRecording[] = [];

  constructor() {
    this.thread.onFinished((spooled) => this.finished.push(spooled));
  }

  async whenFinished(): Promise<SpooledRecording> {
    await eventually(() => this.finished.length > 0, 'the recording is finished');
    return this.finished[0] as SpooledRecording;
  }

  async close(): Promise<void> {
    await this.thread.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A media worker with one call, which hears 1 and says nothing. */
class Call {
  readonly link: RecorderLink;
  readonly reports: RecordingReport[] = [];
  readonly recorder;

  constructor(link = new RecorderLink(), connect: (link: RecorderLink) => void) {
    this.link = link;
    connect(link);
    const start = startOf({ callId: callIdSchema.parse('call-1') });
    this.recorder = link.create(start, 0, (report) => this.reports.push(report));
  }

  tick(count: number): void {
    for (let index = 0; index < count; index += 1) {
      this.recorder.hear(new Uint8Array(160).fill(1));
      this.recorder.tick();
      this.link.tick();
    }
  }

  stop(): void {
    this.recorder.stop('call-ended');
    this.link.tick();
  }

  async started(): Promise<void> {
    await eventually(() => this.reports[0]?.kind === 'started', 'the recording has begun');
  }
}

describe('a full disk', () => {
  const spool = forEachTest(() => new Spool());

  test('ends the recording, leaves what was written, and is finished when there is room', async () => {
    // A recording whose thread is gone, so that somebody must finish it.
    const call = new Call(undefined, (link) => link.connect(spool.thread.portForMediaWorker()));
    call.tick(1);
    await call.started();
    call.tick(50 * 20 + 10);
    const folder = join(spool.folder, ownerId, 'call-1');
    const segment = join(folder, '000001.segment');
    await eventually(() => fileSize(segment) > 320_000, 'the spool has 20 s');
    await spool.thread.stop();

    const limited = fileURLToPath(new URL('../support/limited-process.ts', import.meta.url));
    const limit = 'ulimit -f 400 && exec "$@"';
    const node = [process.execPath, '--import', 'tsx', limited, spool.folder, folder];
    const { stdout } = await run('sh', ['-c', limit, 'sh', ...node]);
    const { finished, faults, reports } = JSON.parse(stdout) as {
      readonly finished: unknown;
      readonly faults: readonly string[];
      readonly reports: readonly { readonly kind: string; readonly reason?: string }[];
    };
    expect(finished).toMatchObject({ fault: 'disk-full' });
    expect(readdirSync(folder).sort()).toEqual(['000001.segment', 'header.json']);
    expect(faults).toEqual(['disk-full']);
    expect(reports.map(({ kind, reason }) => reason ?? kind)).toEqual(['started', 'disk-full']);

    const next = createRecordingThread({
      ...{ spool: spool.folder, ownerId: 'node-2', logger: pino({ level: 'silent' }) },
    });
    expect(await next.finish(folder)).toMatchObject({ durationMs: 20_000, incomplete: true });
    const cut = (await next.leftovers()).find(({ folder: each }) => each.includes('limited'));
    // What the full disk had room for is whole, to the last second that was written.
    expect(cut?.state).toBe('finished');
    if (cut?.state === 'finished') expect(cut.spooled.durationMs % 1_000).toBe(0);
    await next.stop();
  });
});

describe('a stuck disk', () => {
  const spool = forEachTest(() => new Spool());

  test('costs a bounded amount of memory, and a gap whose place and length are noted', async () => {
    const { port1, port2 } = new MessageChannel();
    const megabyte = 1024 * 1024;
    const call = new Call(new RecorderLink(Date.now, 2 * megabyte), (link) => link.connect(port1));
    call.tick(50 * 9 + 49);
    const messages: ToRecordingThread[] = [];
    for (;;) {
      const next = receiveMessageOnPort(port2);
      if (next === undefined) break;
      messages.push(next.message);
    }
    const blocks = messages.flatMap((message) => message.blocks);
    const bytes = blocks.reduce((sum, { length }) => sum + length, 0);
    expect(bytes).toBeGreaterThan(megabyte);
    expect(bytes).toBeLessThanOrEqual(2 * megabyte);

    // The disk recovers.
    const finished: SpooledRecording[] = [];
    const recordings = new PortRecordings(spool.folder, ownerId, {
      post: (message) => port2.postMessage(message),
      onBegun: () => undefined,
      onEnded: ({ folder }) => {
        void spool.thread.finish(folder).then((result) => {
          if (!('fault' in result)) finished.push(result);
        });
      },
      onFault: () => undefined,
    });
    for (const message of messages) recordings.receive(message);
    port2.on('message', (message: ToRecordingThread) => recordings.receive(message));
    await call.started();
    call.tick(50 * 5);
    call.stop();
    await eventually(() => finished.length === 1, 'the recording is finished');
    port1.close();

    const { metadata, folder, fileName } = finished[0] as SpooledRecording;
    expect(metadata).toMatchObject({ incomplete: false, gaps: [{ reason: 'disk-slow' }] });
    const [{ fromMs, untilMs } = { fromMs: 0, untilMs: 0 }] = metadata.gaps;
    const stopped = call.reports.at(-1);
    expect(stopped).toMatchObject({ kind: 'stopped', durationMs: metadata.durationMs });
    const wav = readFileSync(join(folder, fileName)).subarray(58);
    expect(wav.length).toBe(metadata.durationMs * 16);
    expect(leftRuns(wav)).toEqual([
      [1, fromMs * 8],
      [0xff, (untilMs - fromMs) * 8],
      [1, (metadata.durationMs - untilMs) * 8],
    ]);
  });

  test('fails a recording whose beginning is not accepted within 10 s', () => {
    const { port1, port2 } = new MessageChannel();
    const call = new Call(undefined, (link) => link.connect(port1));
    call.tick(50 * 10);
    expect(call.reports).toEqual([]);
    call.tick(2);
    expect(call.reports).toMatchObject([{ kind: 'failed', reason: 'disk-slow' }]);
    port1.close();
    port2.close();
  });
});

describe('a thread that is killed', () => {
  const spool = forEachTest(() => new Spool());

  test('as a media worker: its recordings are finished at once, as incomplete', async () => {
    const port = spool.thread.portForMediaWorker();
    const url = new URL('../support/ticking-worker.ts', import.meta.url);
    const worker = spawnWorker(url, undefined);
    worker.postMessage(port, [port]);
    const segment = join(spool.folder, ownerId, 'call-1', '000001.segment');
    await eventually(() => fileSize(segment) > 48_000, 'three seconds are in the spool');
    await worker.terminate();
    const { metadata } = await spool.whenFinished();

    expect(metadata).toMatchObject({ incomplete: true, reason: 'media-failed', gaps: [] });
    expect(metadata.durationMs).toBeGreaterThanOrEqual(3_000);
  });

  test('as the recording thread: recordings fail, a new thread starts, and finishes them', async () => {
    const call = new Call(undefined, (link) => link.connect(spool.thread.portForMediaWorker()));
    call.tick(50 * 3 + 10);
    await call.started();
    const folder = join(spool.folder, ownerId, 'call-1');
    await eventually(() => fileSize(join(folder, '000001.segment')) > 48_000, 'the spool has 3 s');
    const { generation } = spool.thread;
    // An exception that nobody catches ends a thread.
    spool.thread.portForMediaWorker().postMessage({ parts: 'not a list' });
    await eventually(() => call.recorder.isOver, 'the recording fails');

    expect(call.reports.at(-1)).toMatchObject({ kind: 'failed', reason: 'thread-failed' });
    await eventually(() => spool.thread.generation > generation, 'the thread is gone');
    const [left] = await spool.thread.leftovers();
    expect(left).toMatchObject({ folder, state: 'unfinished' });
    expect(await spool.thread.finish(folder)).toMatchObject({
      ...{ incomplete: true, durationMs: 3_000 },
    });
  });
});

describe('damaged segments', () => {
  const spool = forEachTest(() => new Spool());

  test.each(['plain', 'encrypted'])('of a %s recording never throw', (form) => {
    const folder = join(spool.folder, 'damaged');
    const key = form === 'plain' ? undefined : spoolKeyOf(new Uint8Array(32));
    const writer = new SpoolWriter(folder, headerOf(), key);
    for (let second = 0; second < 3; second += 1) {
      writer.appendAudio(second * 800, Buffer.alloc(16 + 1_600 + 16, 7));
    }
    writer.append({ kind: 'pause', at: 2_400, by: 'keys' });
    writer.append({ kind: 'resume', at: 3_200 });
    writer.append({ kind: 'gap', at: 3_200, until: 4_000, reason: 'disk-slow' });
    writer.append({ kind: 'end', at: 4_000, end: {} });
    writer.close();
    const path = join(folder, '000001.segment');
    const whole = readFileSync(path);
    expect(samplesOf(folder, key)).toBe(4_000);

    const random = seededRandom(29);
    for (let round = 0; round < 400; round += 1) {
      writeFileSync(path, damaged(whole, random));
      expect(samplesOf(folder, key)).toBeLessThanOrEqual(4_000);
    }
  });
});

/** Cuts bytes off, changes some, or moves a part of them. */
function damaged(whole: Buffer, random: () => number): Buffer {
  const below = (limit: number): number => Math.floor(random() * limit);
  const cut = below(4) === 0 ? below(whole.length) : whole.length;
  const bytes = Buffer.from(whole.subarray(0, cut));
  for (let count = below(8); count > 0 && cut > 0; count -= 1) bytes[below(cut)] = below(256);
  if (below(4) === 0) bytes.copy(bytes, below(cut), below(cut));
  return bytes;
}

function headerOf() {
  const { callId, accountId, botId, from, fill } = startOf();
  return { version: 1, callId, accountId, botId, from, fill, ownerId, startedAt: 0 } as const;
}

/** Reads everything that is left. Returns the length. */
function samplesOf(folder: string, key: ReturnType<typeof spoolKeyOf> | undefined): number {
  const reader = new SpoolReader(folder, key);
  try {
    for (const part of reader.parts) if (part.kind === 'stored') part.read();
    return timelineOf(reader.parts, 'silence').samples;
  } finally {
    reader.close();
  }
}

function fileSize(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** Describes the left channel by runs of equal samples. */
function leftRuns(audio: Uint8Array): [number, number][] {
  const runs: [number, number][] = [];
  for (const sample of channelOf(audio, 0)) {
    const last = runs.at(-1);
    if (last?.[0] === sample) last[1] += 1;
    else runs.push([sample, 1]);
  }
  return runs;
}
