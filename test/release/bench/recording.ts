// What recording costs per recorded minute, by thread. The main thread of the bench stands for a
// media worker: it drives RTP sessions with speech on both sides, faster than real time, with and
// without a recording. Everything else is the recording thread and V8's helpers.
//
// `--against <commit>` compares sessions that aren't recorded with those of another commit.

import { randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import pino from 'pino';
import { callIdSchema } from '../../../src/calls/contract/identity.ts';
import type { RecordingStart } from '../../../src/calls/recording/recording.ts';
import { encode } from '../../../src/media/g711.ts';
import { PlayoutPool } from '../../../src/media/playout/playout-pool.ts';
import { PlayoutQueue } from '../../../src/media/playout/playout-queue.ts';
import { writeRtpHeader } from '../../../src/media/rtp/rtp-packet.ts';
import { RtpSession } from '../../../src/media/rtp/rtp-session.ts';
import { createRtpCounts, createRtpScratch } from '../../../src/media/rtp/rtp-session-ports.ts';
import { RecorderLink } from '../../../src/recording/audio/recorder-link.ts';
import type { SpooledRecording } from '../../../src/recording/recording-thread.ts';
import { createRecordingThread } from '../../../src/recording/thread-handle.ts';
import { openWav } from '../../../src/sounds/wav-file.ts';
import { quietBot } from '../../media/support/quiet-bot.ts';
import { remote } from '../../media/support/session-bench.ts';
import { keyPairs, wrappedFor } from '../../recording/support/recording-keys.ts';
import { treeOf } from './build-of-commit.ts';
import { optionsOf } from './options.ts';

const ticksPerSecond = 50;
const frameBytes = 160;

export async function benchRecording(args: readonly string[]): Promise<void> {
  const { calls, seconds, against } = optionsOf(args, { calls: 100, seconds: 60, against: '' });
  if (against !== '') {
    await compareTicks(against, calls);
    return;
  }
  const minutes = (calls * seconds) / 60;
  // V8 compiles what it sees often, in its helper threads.
  for (const hasBot of [true, false]) {
    await run({ calls: 20, seconds: 60, hasBot, recorded: { isEncrypted: true } });
    await run({ calls: 20, seconds: 60, hasBot });
  }
  for (const hasBot of [true, false]) {
    const bare = await run({ calls, seconds, hasBot });
    console.log(
      `\n${calls} calls of ${seconds} s ${hasBot ? 'with a bot' : 'that nobody listens to'}`,
    );
    print('not recorded: session', bare.sessionsMs / minutes);
    for (const isEncrypted of [false, true]) {
      const recorded = await run({ calls, seconds, hasBot, recorded: { isEncrypted } });
      const [inWorker, inThread] = [
        (recorded.sessionsMs - bare.sessionsMs) / minutes,
        recorded.writingMs / minutes,
      ];
      console.log(isEncrypted ? ' encrypted' : ' plain');
      print('writing: media worker', inWorker);
      print('writing: recording thread and helpers', inThread);
      print('writing, in total (bound: 10)', inWorker + inThread);
      print('finishing: recording thread (bound: 15)', recorded.finishingMs / minutes);
      print('finishing: media worker', recorded.finishingInWorkerMs / minutes);
      console.log(
        `  spool ${(recorded.spoolBytes / calls / seconds / 1_000).toFixed(2)} kB/s per call, ${recorded.gaps} gaps, ${recorded.finished} finished`,
      );
    }
  }
}

type Run = {
  readonly calls: number;
  readonly seconds: number;
  readonly hasBot: boolean;
  readonly recorded?: { readonly isEncrypted: boolean };
};

/** All in milliseconds of CPU time, except the counts. */
type Cost = {
  sessionsMs: number;
  writingMs: number;
  finishingMs: number;
  finishingInWorkerMs: number;
  spoolBytes: number;
  gaps: number;
  finished: number;
};

async function run({ calls, seconds, hasBot, recorded }: Run): Promise<Cost> {
  const link = new RecorderLink();
  const lines = Array.from({ length: calls }, (_, index) => new Line(index, link, hasBot));
  if (recorded !== undefined) return await runRecorded(lines, link, seconds, recorded.isEncrypted);
  const before = cpuByThread();
  await drive(lines, link, seconds, 0);
  return { ...nothing, sessionsMs: cpuByThread().main - before.main };
}

async function runRecorded(
  lines: readonly Line[],
  link: RecorderLink,
  seconds: number,
  isEncrypted: boolean,
): Promise<Cost> {
  const spool = mkdtempSync(join(tmpdir(), 'offhook-bench-recording-'));
  const thread = createRecordingThread({
    ...{ spool, ownerId: 'bench', logger: pino({ level: 'warn' }) },
  });
  const finished: SpooledRecording[] = [];
  thread.onFinished((spooled) => finished.push(spooled));
  link.connect(thread.portForMediaWorker());
  await thread.leftovers();
  for (const line of lines) line.record(isEncrypted);
  const before = cpuByThread();
  // The thread must not fall behind, because this is faster than real time.
  await drive(lines, link, seconds, 30);
  await pause(500);
  const written = cpuByThread();
  const spoolBytes = sizeOf(spool);
  for (const line of lines) line.stop();
  link.tick();
  while (finished.length < lines.length) await pause(20);
  const after = cpuByThread();
  await thread.stop();
  rmSync(spool, { recursive: true });
  return {
    sessionsMs: written.main - before.main,
    writingMs: written.others - before.others,
    finishingMs: after.others - written.others,
    finishingInWorkerMs: after.main - written.main,
    spoolBytes,
    gaps: finished.reduce((sum, { metadata }) => sum + metadata.gaps.length, 0),
    finished: finished.length,
  };
}

async function drive(
  lines: readonly Line[],
  link: RecorderLink,
  seconds: number,
  pauseMs: number,
): Promise<void> {
  for (let second = 0; second < seconds; second += 1) {
    for (let tick = 0; tick < ticksPerSecond; tick += 1) {
      for (const line of lines) line.tick();
      link.tick();
    }
    if (pauseMs > 0) await pause(pauseMs);
  }
}

const nothing: Cost = {
  ...{ sessionsMs: 0, writingMs: 0, finishingMs: 0, finishingInWorkerMs: 0 },
  ...{ spoolBytes: 0, gaps: 0, finished: 0 },
};

const contentKey = randomBytes(32);
const [[, pair] = []] = keyPairs();
const speech = ['person-hello', 'bot-message'].map((name) => readSpeech(name));

function readSpeech(name: string): Uint8Array {
  const folder = fileURLToPath(new URL('../../../src/embedded/sandbox/audio', import.meta.url));
  const opened = openWav(readFileSync(join(folder, `${name}.wav`)), { maxRateHz: 48_000 });
  if (!opened.ok) throw new Error(opened.problem);
  const { wav } = opened;
  const step = wav.sampleRateHz / 8_000;
  const length = Math.floor(wav.length / step / frameBytes) * frameBytes;
  return encode(
    'PCMU',
    Int16Array.from({ length }, (_, at) => wav.sampleAt(Math.floor(at * step), 0)),
  );
}

/** One call, in which both sides speak all the time. */
class Line {
  readonly #session: RtpSession;
  readonly #queue = new PlayoutQueue(new PlayoutPool(10_000_000), () => undefined);
  readonly #packet = new Uint8Array(12 + frameBytes);
  readonly #index: number;
  readonly #hasBot: boolean;
  #ticks = 0;

  constructor(index: number, link: RecorderLink, hasBot: boolean) {
    this.#index = index;
    this.#hasBot = hasBot;
    this.#session = new RtpSession(sessionOptions(link), silentSink);
    this.#session.applyRemote(remote, 'answer');
    if (hasBot) this.#session.streaming.start(quietBot, this.#queue);
  }

  record(isEncrypted: boolean): void {
    const recording: RecordingStart = {
      callId: callIdSchema.parse(`call-${this.#index}`),
      ...{ accountId: 'account', botId: 'bot', from: 'answer', fill: 'silence', pauseOnKeys: true },
      ...(isEncrypted && pair
        ? {
            encryption: {
              ...{ keyName: 'crm', contentKey, sealedContentKey: 'eA==' },
              wrapped: wrappedFor(pair, contentKey),
            },
          }
        : {}),
    };
    this.#session.execute({ kind: 'record', action: 'start', recording });
  }

  tick(): void {
    const [heard, said] = speech as [Uint8Array, Uint8Array];
    const at = ((this.#ticks + this.#index) * frameBytes) % heard.length;
    this.#packet.set(heard.subarray(at, at + frameBytes), 12);
    writeRtpHeader(this.#packet, {
      ...{ payloadType: 0, marker: false, ssrc: 7 },
      ...{ sequence: this.#ticks & 0xffff, timestamp: (this.#ticks * frameBytes) >>> 0 },
    });
    this.#session.receive(this.#packet, '192.0.2.1', 4_000);
    if (this.#hasBot && this.#ticks % ticksPerSecond === 0) {
      const from = (this.#ticks * frameBytes) % (said.length - 8_000);
      this.#queue.write(said.subarray(from, from + 8_000));
    }
    this.#ticks += 1;
    this.#session.tick(true);
  }

  stop(): void {
    this.#session.execute({ kind: 'record', action: 'stop', reason: 'call-ended' });
  }
}

const shared = { scratch: createRtpScratch(), counts: createRtpCounts() };

function sessionOptions(link?: RecorderLink) {
  return {
    createDetector: () => ({ done: true, push: () => [], stop: () => [] }),
    ...(link === undefined ? {} : { createRecorder: link.create }),
    ...{ inactivityFrames: 1_000_000, silenceFrames: 10, ...shared },
    ...{ ssrc: 1, firstSequence: 1, firstTimestamp: 1, cname: 'us' },
  };
}

const silentSink = {
  send: () => undefined,
  sendRtcp: () => undefined,
  connect: () => undefined,
  disconnect: () => undefined,
  report: () => undefined,
  onDetectorError: () => undefined,
  onRecorderError: (error: unknown) => console.error(error),
};

/** Alternates between the two commits, because the machine's speed changes. */
async function compareTicks(commit: string, rounds: number): Promise<void> {
  await using tree = await treeOf(commit);
  const path = pathToFileURL(join(tree.folder, 'src/media/rtp/rtp-session.ts')).href;
  const other = (await import(path)) as { RtpSession: typeof RtpSession };
  const costs: Record<'here' | 'there', number[]> = { here: [], there: [] };
  for (let round = 0; round < rounds; round += 1) {
    costs.here.push(ticksOf(RtpSession));
    costs.there.push(ticksOf(other.RtpSession));
  }
  for (const [name, values] of Object.entries(costs)) {
    const median = values.sort((one, two) => one - two)[Math.floor(values.length / 2)] ?? 0;
    console.log(`${name === 'here' ? 'this tree' : commit}: ${median.toFixed(3)} µs per tick`);
  }
}

function ticksOf(Session: typeof RtpSession): number {
  const session = new Session(sessionOptions(), silentSink);
  session.applyRemote(remote, 'answer');
  session.streaming.start(quietBot, new PlayoutQueue(new PlayoutPool(1_000_000), () => undefined));
  const packet = new Uint8Array(12 + frameBytes);
  const count = 20_000;
  const before = cpuByThread().main;
  for (let tick = 0; tick < count; tick += 1) {
    writeRtpHeader(packet, {
      ...{ payloadType: 0, marker: false, ssrc: 7 },
      ...{ sequence: tick & 0xffff, timestamp: (tick * frameBytes) >>> 0 },
    });
    session.receive(packet, '192.0.2.1', 4_000);
    session.tick(true);
  }
  return ((cpuByThread().main - before) * 1_000) / count;
}

/** CPU time of the main thread, and of all other threads of this process. */
function cpuByThread(): { readonly main: number; readonly others: number } {
  let others = 0;
  let main = 0;
  for (const id of readdirSync('/proc/self/task')) {
    const [ns = '0'] = readFileSync(`/proc/self/task/${id}/schedstat`, 'utf8').split(' ');
    if (Number(id) === process.pid) main = Number(ns) / 1e6;
    else others += Number(ns) / 1e6;
  }
  return { main, others };
}

function sizeOf(folder: string): number {
  return readdirSync(folder, { recursive: true, encoding: 'utf8', withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.segment'))
    .reduce((sum, entry) => sum + readFileSync(join(entry.parentPath, entry.name)).length, 0);
}

function print(what: string, ms: number): void {
  console.log(`  ${what.padEnd(45)} ${ms.toFixed(2)} ms per minute of a call`);
}
