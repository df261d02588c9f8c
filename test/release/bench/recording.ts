// What recording costs per recorded minute, by thread. The main thread of the bench stands for a
// media worker: it drives RTP sessions with speech on both sides, faster than real time, with and
// without a recording. Everything else is the recording thread and V8's helpers.
//
// `--realtime <seconds>` lets the calls run in real time instead, and shows how late the clock is.
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
  const { calls, seconds, against, realtime } = optionsOf(args, {
    ...{ calls: 100, seconds: 60, against: '', realtime: 0 },
  });
  if (realtime > 0) {
    for (const isRecorded of [false, true]) await runInRealTime(calls, realtime, isRecorded);
    return;
  }
  if (against !== '') {
    await compareTicks(against, calls);
    return;
  }
  // V8 compiles what it sees often, in its helper threads.
  for (const hasBot of [true, false]) await run({ calls, seconds: 20, hasBot, isEncrypted: true });
  for (const hasBot of [true, false]) {
    console.log(
      `\n${calls} calls of ${seconds} s ${hasBot ? 'with a bot' : 'that nobody listens to'}`,
    );
    for (const isEncrypted of [false, true]) {
      print(await run({ calls, seconds, hasBot, isEncrypted }), isEncrypted);
    }
  }
}

type Run = {
  readonly calls: number;
  readonly seconds: number;
  readonly hasBot: boolean;
  readonly isEncrypted: boolean;
};

/** In milliseconds of CPU time per minute of a call, except the last three. */
type Cost = {
  readonly session: number;
  readonly inWorker: number;
  readonly inThread: number;
  readonly finishing: number;
  readonly finishingInWorker: number;
  readonly spoolBytesPerSecond: number;
  readonly gaps: number;
  readonly finished: number;
};

/** Few enough for several rounds a minute, and enough for several garbage collections a round. */
const roundSeconds = 5;
/** The recording thread must not fall behind, because this is faster than real time. */
const pauseMs = 30;

/**
 * Takes turns between calls that aren't recorded and calls that are, because the machine's speed
 * changes. The cost is the median of the differences.
 */
async function run({ calls, seconds, hasBot, isEncrypted }: Run): Promise<Cost> {
  const bench = await BenchThread.open();
  const linesOf = (): Line[] =>
    Array.from({ length: calls }, (_, index) => new Line(index, bench.link, hasBot));
  const [bare, recorded] = [linesOf(), linesOf()];
  for (const line of recorded) line.record(isEncrypted);
  const rounds: { bare: Cpu; recorded: Cpu }[] = [];
  for (let second = 0; second < seconds; second += roundSeconds) {
    rounds.push({
      bare: await cpuOf(() => drive(bare, bench.link)),
      recorded: await cpuOf(() => drive(recorded, bench.link)),
    });
  }
  const spoolBytes = sizeOf(bench.spool);
  const finishing = await cpuOf(() => bench.finish(recorded));
  await bench.close();
  // The first round has calls that begin, and buffers that grow.
  const steady = rounds.slice(1);
  const minutesPerRound = (calls * roundSeconds) / 60;
  const minutes = (calls * seconds) / 60;
  const perMinute = (cost: (round: (typeof steady)[number]) => number): number =>
    medianOf(steady.map(cost)) / minutesPerRound;
  return {
    session: perMinute((round) => round.bare.main),
    inWorker: perMinute((round) => round.recorded.main - round.bare.main),
    inThread: perMinute((round) => round.recorded.others - round.bare.others),
    finishing: finishing.others / minutes,
    finishingInWorker: finishing.main / minutes,
    spoolBytesPerSecond: spoolBytes / calls / seconds,
    gaps: bench.finished.reduce((sum, { metadata }) => sum + metadata.gaps.length, 0),
    finished: bench.finished.length,
  };
}

/** A recording thread with a spool of its own. */
class BenchThread {
  readonly spool = mkdtempSync(join(tmpdir(), 'offhook-bench-recording-'));
  readonly link = new RecorderLink();
  readonly finished: SpooledRecording[] = [];
  readonly #thread = createRecordingThread({
    ...{ spool: this.spool, ownerId: 'bench', logger: pino({ level: 'warn' }) },
  });

  static async open(): Promise<BenchThread> {
    const bench = new BenchThread();
    bench.#thread.onFinished((spooled) => bench.finished.push(spooled));
    bench.link.connect(bench.#thread.portForMediaWorker());
    await bench.#thread.leftovers();
    return bench;
  }

  async finish(lines: readonly Line[]): Promise<void> {
    for (const line of lines) line.stop();
    this.link.tick();
    while (this.finished.length < lines.length) await pause(20);
  }

  async close(): Promise<void> {
    await this.#thread.stop();
    rmSync(this.spool, { recursive: true });
  }
}

async function drive(lines: readonly Line[], link: RecorderLink): Promise<void> {
  for (let second = 0; second < roundSeconds; second += 1) {
    for (let tick = 0; tick < ticksPerSecond; tick += 1) {
      for (const line of lines) line.tick();
      link.tick();
    }
    await pause(pauseMs);
  }
}

/** In each tick of the first second, a fiftieth of the calls begins to be recorded. */
function startThoseOf(tick: number, lines: readonly Line[]): void {
  if (tick >= ticksPerSecond) return;
  for (let index = tick; index < lines.length; index += ticksPerSecond) lines[index]?.record(false);
}

/** One media worker. Calls begin in different ticks of a second. */
async function runInRealTime(calls: number, seconds: number, isRecorded: boolean): Promise<void> {
  const bench = await BenchThread.open();
  const lines = Array.from({ length: calls }, (_, index) => new Line(index, bench.link, true));
  const tickMs = 1_000 / ticksPerSecond;
  let [late, latestMs] = [0, 0];
  const cpu = await cpuOf(async () => {
    const startedMs = performance.now();
    for (let tick = 0; tick < seconds * ticksPerSecond; tick += 1) {
      if (isRecorded) startThoseOf(tick, lines);
      for (const line of lines) line.tick();
      bench.link.tick();
      const dueMs = startedMs + (tick + 1) * tickMs;
      await pause(Math.max(0, dueMs - performance.now()));
      const lateMs = performance.now() - dueMs;
      if (lateMs > tickMs) late += 1;
      latestMs = Math.max(latestMs, lateMs);
    }
  });
  const spool = isRecorded ? sizeOf(bench.spool) / calls / seconds / 1_000 : 0;
  await bench.finish(isRecorded ? lines : []);
  const gaps = bench.finished.reduce((sum, { metadata }) => sum + metadata.gaps.length, 0);
  await bench.close();
  console.log(
    `${calls} calls in real time, ${isRecorded ? '' : 'not '}recorded: ${late} of ${seconds * ticksPerSecond} ticks over 20 ms late, at most ${latestMs.toFixed(0)} ms; media worker ${(cpu.main / seconds / 10).toFixed(0)} %, others ${(cpu.others / seconds / 10).toFixed(0)} % of a CPU; spool ${spool.toFixed(2)} kB/s per call, ${gaps} gaps`,
  );
}

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
    console.log(
      `${name === 'here' ? 'this tree' : commit}: ${medianOf(values).toFixed(3)} µs per tick`,
    );
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

/** CPU time in milliseconds of the main thread, and of all other threads of this process. */
type Cpu = { readonly main: number; readonly others: number };

/** The pauses let the kernel bring its accounts up to date, and the other threads catch up. */
async function cpuOf(work: () => Promise<void>): Promise<Cpu> {
  await pause(pauseMs);
  const before = cpuByThread();
  await work();
  await pause(pauseMs);
  const after = cpuByThread();
  return { main: after.main - before.main, others: after.others - before.others };
}

function cpuByThread(): Cpu {
  let others = 0;
  let main = 0;
  for (const id of readdirSync('/proc/self/task')) {
    const [ns = '0'] = readFileSync(`/proc/self/task/${id}/schedstat`, 'utf8').split(' ');
    if (Number(id) === process.pid) main = Number(ns) / 1e6;
    else others += Number(ns) / 1e6;
  }
  return { main, others };
}

function medianOf(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  const middle = sorted.length / 2;
  return ((sorted[Math.floor(middle - 0.5)] ?? 0) + (sorted[Math.floor(middle)] ?? 0)) / 2;
}

function sizeOf(folder: string): number {
  return readdirSync(folder, { recursive: true, encoding: 'utf8', withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.segment'))
    .reduce((sum, entry) => sum + readFileSync(join(entry.parentPath, entry.name)).length, 0);
}

function print(cost: Cost, isEncrypted: boolean): void {
  const line = (what: string, ms: number): void =>
    console.log(`  ${what.padEnd(45)} ${ms.toFixed(2)} ms per minute of a call`);
  console.log(isEncrypted ? ' encrypted' : ' plain');
  line('session without recording', cost.session);
  line('writing: media worker', cost.inWorker);
  line('writing: recording thread and helpers', cost.inThread);
  line('writing, in total (bound: 10)', cost.inWorker + cost.inThread);
  line('finishing: recording thread (bound: 15)', cost.finishing);
  line('finishing: media worker', cost.finishingInWorker);
  console.log(
    `  spool ${(cost.spoolBytesPerSecond / 1_000).toFixed(2)} kB/s per call, ${cost.gaps} gaps, ${cost.finished} finished`,
  );
}
