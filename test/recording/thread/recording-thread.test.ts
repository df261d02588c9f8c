// The recording thread with real files: from the parts that a media worker sends to one whole file,
// and what is left when something dies.

import { randomBytes } from 'node:crypto';
import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pino from 'pino';
import { describe, expect, test } from 'vitest';
import { callIdSchema } from '../../../src/calls/contract/identity.ts';
import type { RecordingReport, RecordingStart } from '../../../src/calls/recording/recording.ts';
import { RecorderLink } from '../../../src/recording/audio/recorder-link.ts';
import { FileDecryptor } from '../../../src/recording/formats/encrypted-file.ts';
import type { SpooledRecording } from '../../../src/recording/recording-thread.ts';
import { createRecordingThread } from '../../../src/recording/thread-handle.ts';
import { eventually } from '../../support/eventually.ts';
import { forEachTest } from '../../support/opened.ts';
import { startOf } from '../support/recorded-session.ts';
import { keyPairs, wrappedFor } from '../support/recording-keys.ts';

const ownerId = 'node-1/0123abcd';
const frame = (value: number): Uint8Array => new Uint8Array(160).fill(value);

class Spool {
  readonly folder = mkdtempSync(join(tmpdir(), 'offhook-recording-'));
  readonly thread = createRecordingThread({
    ...{ spool: this.folder, ownerId, logger: pino({ level: 'silent' }) },
  });
  readonly finished: SpooledRecording[] = [];
  readonly faults: string[] = [];
  readonly reports: RecordingReport[] = [];
  link = new RecorderLink(() => 1_780_000_000_000);

  constructor() {
    this.thread.onFinished((spooled) => this.finished.push(spooled));
    this.thread.onFault(({ fault }) => this.faults.push(fault));
  }

  connect() {
    const port = this.thread.portForMediaWorker();
    this.link.connect(port);
    return port;
  }

  /** A recording that hears 1 and says 2. */
  record(changes: Partial<RecordingStart> = {}) {
    const recorder = this.link.create(startOf(changes), 160, (report) => this.reports.push(report));
    let timestamp = 160;
    const tick = (count: number): void => {
      for (let index = 0; index < count; index += 1) {
        recorder.hear(frame(1));
        recorder.say(frame(2), 0, 'PCMU', timestamp);
        recorder.tick();
        timestamp += 160;
        this.link.tick();
      }
    };
    return { recorder, tick };
  }

  started(): Promise<void> {
    return eventually(
      () => this.reports.some(({ kind }) => kind === 'started'),
      'the spool accepts the recording',
    );
  }

  segmentBytes(): number {
    return readdirSync(this.folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.segment'))
      .reduce((sum, name) => sum + statSync(join(this.folder, name)).size, 0);
  }

  async whenFinished(count = 1): Promise<SpooledRecording> {
    await eventually(() => this.finished.length === count, 'the recording is finished');
    return this.finished.at(-1) as SpooledRecording;
  }

  async close(): Promise<void> {
    await this.thread.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

describe('a recording', () => {
  const spool = forEachTest(() => new Spool());

  test('becomes one WAV file with its metadata beside it, and its segments go', async () => {
    spool.connect();
    const { recorder, tick } = spool.record();
    tick(100);
    recorder.pause();
    tick(50);
    recorder.resume();
    tick(25);
    recorder.stop('call-ended');
    spool.link.tick();
    const { folder, fileName, metadataName, metadata } = await spool.whenFinished();

    expect(spool.reports).toEqual([
      { kind: 'started', at: 1_780_000_000_000 },
      { kind: 'paused', offsetMs: 2_000, by: 'command' },
      { kind: 'resumed', offsetMs: 3_000 },
      { kind: 'stopped', reason: 'call-ended', durationMs: 3_500, pausedMs: 1_000 },
    ]);
    expect(folder).toBe(join(spool.folder, 'node-1%2F0123abcd', 'call-1'));
    expect(readdirSync(folder).sort()).toEqual(['call-1.json', 'call-1.wav', 'header.json']);
    const wav = readFileSync(join(folder, fileName));
    expect(wav.toString('latin1', 0, 4)).toBe('RIFF');
    expect(wav.readUInt32LE(54)).toBe(wav.length - 58);
    expect(wav.length).toBe(58 + 3_500 * 16);
    expect(levelsOf(wav.subarray(58))).toBe('1/2 × 16000, 255/255 × 8000, 1/2 × 4000');
    expect(JSON.parse(readFileSync(join(folder, metadataName), 'utf8'))).toEqual(metadata);
    expect(metadata).toMatchObject({
      ...{ durationMs: 3_500, pausedMs: 1_000, incomplete: false, bytes: wav.length, gaps: [] },
      pauses: [
        {
          ...{ fromMs: 2_000, untilMs: 3_000, fileMs: 2_000, by: 'command' },
          ...{ from: '2026-05-28T20:26:42.000Z', until: '2026-05-28T20:26:43.000Z' },
        },
      ],
    });
  });

  test('leaves its pauses out if it says so, and their times stay in the metadata', async () => {
    spool.connect();
    const { recorder, tick } = spool.record({ fill: 'cut' });
    tick(50);
    recorder.pause();
    tick(50);
    recorder.resume();
    tick(50);
    recorder.pause();
    tick(10);
    recorder.stop('command');
    spool.link.tick();
    const { folder, fileName, metadata } = await spool.whenFinished();

    const wav = readFileSync(join(folder, fileName));
    expect(levelsOf(wav.subarray(58))).toBe('1/2 × 16000');
    expect(metadata.durationMs).toBe(3_200);
    expect(metadata.pauses.map(({ fromMs, untilMs, fileMs }) => [fromMs, untilMs, fileMs])).toEqual(
      [
        [1_000, 2_000, 1_000],
        [3_000, 3_200, 2_000],
      ],
    );
  });

  test.each(keyPairs())(
    'is encrypted for a key of type %s, and so is its spool',
    async (_, pair) => {
      spool.connect();
      const contentKey = randomBytes(32);
      const { recorder, tick } = spool.record({
        encryption: {
          ...{ keyName: 'crm', contentKey, sealedContentKey: 'c2VhbGVk' },
          wrapped: wrappedFor(pair, contentKey),
        },
      });
      tick(120);
      await spool.started();
      const [left] = readdirSync(join(spool.folder, 'node-1%2F0123abcd'));
      const live = join(spool.folder, 'node-1%2F0123abcd', left ?? '');
      await eventually(
        () => readFileSync(join(live, '000001.segment')).length > 30_000,
        'two seconds are in the spool',
      );
      expect(
        readFileSync(join(live, '000001.segment')).includes(Buffer.from([1, 2, 1, 2, 1, 2])),
      ).toBe(false);
      expect(readFileSync(join(live, 'header.json'), 'utf8')).not.toContain(
        contentKey.toString('base64'),
      );
      recorder.stop('call-ended');
      spool.link.tick();
      const { folder, fileName, keyName } = await spool.whenFinished();

      expect([fileName, keyName]).toEqual(['call-1.wav.enc', 'crm']);
      const decryptor = new FileDecryptor(pair.privateKey);
      const plain = [decryptor.push(readFileSync(join(folder, fileName))), decryptor.end()].flatMap(
        (step) => (step.ok ? step.plain : []),
      );
      expect(levelsOf(Buffer.concat(plain).subarray(58))).toBe('1/2 × 19200');
    },
  );
});

describe('what is left over', () => {
  const spool = forEachTest(() => new Spool());

  test('by a thread that dies: the recordings fail, and can be finished up to their torn end', async () => {
    spool.connect();
    const { tick } = spool.record();
    const other = spool.record({ callId: callIdSchema.parse('../x') });
    tick(130);
    other.tick(70);
    await spool.started();
    const { generation } = spool.thread;
    await eventually(() => spool.reports.length === 2, 'both recordings have begun');
    await eventually(() => spool.segmentBytes() > 48_000, 'three seconds are in the spool');
    await spool.thread.stop();
    await eventually(() => spool.reports.length === 4, 'both recordings have failed');
    expect(spool.reports.at(-1)).toMatchObject({ kind: 'failed', reason: 'thread-failed' });
    expect(spool.thread.generation).toBe(generation + 1);

    await using next = new Disposable();
    next.thread = createRecordingThread({
      ...{ spool: spool.folder, ownerId: 'node-2/x', logger: pino({ level: 'silent' }) },
    });
    for (const left of await next.thread.leftovers()) {
      appendFileSync(join(left.folder, '000001.segment'), Buffer.from('torn'));
    }
    const leftovers = await next.thread.leftovers();
    expect(leftovers.map(({ state }) => state)).toEqual(['unfinished', 'unfinished']);
    for (const left of leftovers) {
      const finished = await next.thread.finish(left.folder);
      expect(finished).toMatchObject({ incomplete: true, ownerId });
      if ('fault' in finished) continue;
      const wav = readFileSync(join(finished.folder, finished.fileName));
      expect(levelsOf(wav.subarray(58))).toMatch(/^1\/2 × (16000|8000)$/);
    }
    expect((await next.thread.leftovers()).map(({ state }) => state)).toEqual([
      ...['finished', 'finished'],
    ]);
    for (const left of leftovers) await next.thread.remove(left.folder);
    expect(await next.thread.leftovers()).toEqual([]);
    await expect(next.thread.remove('/etc')).rejects.toThrow('isn’t a recording');
  });

  test('by a media worker that dies is finished at once, as incomplete', async () => {
    const port = spool.connect();
    const { tick } = spool.record();
    tick(110);
    await spool.started();
    port.close();
    const { metadata } = await spool.whenFinished();

    expect(metadata).toMatchObject({
      ...{ incomplete: true, reason: 'media-failed', durationMs: 2_000 },
    });
  });

  test('without its key stays as it is', async () => {
    const port = spool.connect();
    const contentKey = randomBytes(32);
    const [[, pair] = []] = keyPairs();
    if (pair === undefined) throw new Error('no key');
    const { tick } = spool.record({
      encryption: {
        ...{ keyName: 'crm', contentKey, sealedContentKey: 'c2VhbGVk' },
        wrapped: wrappedFor(pair, contentKey),
      },
    });
    tick(60);
    await spool.started();
    await spool.thread.stop();
    port.close();
    await using next = new Disposable();
    next.thread = createRecordingThread({
      ...{ spool: spool.folder, ownerId: 'node-2/x', logger: pino({ level: 'silent' }) },
    });
    const [left] = await next.thread.leftovers();
    const folder = left?.folder ?? '';
    expect(await next.thread.finish(folder)).toMatchObject({ fault: 'key' });
    // Another key opens none of the records.
    expect(await next.thread.finish(folder, randomBytes(32))).toMatchObject({ fault: 'key' });
    expect(await next.thread.finish(folder, contentKey)).toMatchObject({
      ...{ incomplete: true, keyName: 'crm', durationMs: 1_000 },
    });
  });
});

/** Stops a thread at the end of a test. */
class Disposable {
  thread = createRecordingThread({ spool: '', ownerId: '', logger: pino({ level: 'silent' }) });

  async [Symbol.asyncDispose](): Promise<void> {
    await this.thread.stop();
  }
}

/** Describes audio by runs of equal samples: `left/right × samples`. */
function levelsOf(audio: Buffer): string {
  const runs: { level: string; samples: number }[] = [];
  for (let at = 0; at < audio.length; at += 2) {
    const level = `${audio[at]}/${audio[at + 1]}`;
    const last = runs.at(-1);
    if (last?.level === level) last.samples += 1;
    else runs.push({ level, samples: 1 });
  }
  return runs.map(({ level, samples }) => `${level} × ${samples}`).join(', ');
}
