// Measures what machine detection costs. First the detector alone, per frame of 20 ms. Then the
// number of calls under detection that one core carries, with RTP in and out through the media
// worker, until frames come 20 ms late. With `--media srtp` it instead measures calls with SRTP
// beside calls with RTP, in turn.

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { BroadcastChannel } from 'node:worker_threads';
import { createDetector } from '../../../src/amd/detector.ts';
import { frameSamples } from '../../../src/amd/frame.ts';
import { addFrame, newRecentAudio } from '../../../src/amd/recent-audio.ts';
import { createToneDetector } from '../../../src/amd/tones/tone-detector.ts';
import { createVoiceActivity } from '../../../src/amd/voice/voice-activity.ts';
import { defaultAmdTimers } from '../../../src/calls/call-types.ts';
import type { CallId } from '../../../src/calls/contract/identity.ts';
import type { MediaObserver, MediaSession } from '../../../src/calls/media.ts';
import { silentLogger } from '../../../src/lib/logger.ts';
import { createMediaPort, type MediaGateway } from '../../../src/media/media-port.ts';
import { readRecordings } from './amd-audio.ts';
import { channelName, type WorkerFigures } from './amd-figures.ts';
import type { ToSender } from './amd-sender.ts';
import {
  answerTo,
  encryptionOf,
  type KeyTexts,
  type Media,
  printRatio,
  turnsOf,
} from './far-end-media.ts';
import { optionsOf } from './options.ts';
import { threadCpuMs } from './process-usage.ts';
import { receivedAudioUs } from './received-audio.ts';

const settings = { timers: defaultAmdTimers };
/**
 * The number of runs, of which the best counts. The first runs are not compiled yet, and other work
 * of the machine disturbs some runs.
 */
const runs = 12;
const inTurn = 500;
/** The number of frames of each call. */
const turns = 100;
const latestMs = 20;
/** The gateway locks sources and connects sockets 3 s after the first packet. */
const settleMs = 4_000;
const busyCore = 0.85;

export async function benchAmd(args: readonly string[]): Promise<void> {
  const values = optionsOf(args, {
    calls: [200, 400, 500, 600, 700, 800, 900, 1_000, 1_250, 1_500],
    seconds: 4,
    ...{ media: 'rtp', rounds: 3 },
  });
  if (values.media !== 'rtp') {
    await srtpBesideRtp(values.calls, values);
    return;
  }
  detectorAlone(await readRecordings());
  await callsOfOneCore(values.calls, values.seconds);
}

function detectorAlone(recordings: readonly Int16Array[]): void {
  const framesOf = recordings.map(cut);
  const whole = best(() => {
    let frames = 0;
    const startMs = threadCpuMs();
    for (const recording of framesOf) {
      const detector = createDetector(settings);
      for (const frame of recording) {
        if (detector.done) break;
        detector.push(frame, false);
        frames += 1;
      }
      detector.stop('recording-ended');
    }
    return ((threadCpuMs() - startMs) * 1_000) / frames;
  });
  const voice = perFrame(framesOf, () => {
    const recent = newRecentAudio();
    const activity = createVoiceActivity(recent);
    return {
      push(frame) {
        addFrame(recent, frame);
        activity.push(frame, false);
      },
      end: () => activity.release(),
    };
  });
  const tones = perFrame(framesOf, () => {
    const recent = newRecentAudio();
    const detector = createToneDetector(recent);
    return {
      push(frame) {
        addFrame(recent, frame);
        detector.push(true);
      },
    };
  });
  console.log(`detector alone, best of ${runs} runs over ${recordings.length} recordings`);
  print('CPU time per frame of 20 ms, µs', whole.toFixed(2));
  print('  of which voice activity', voice.toFixed(2));
  print('  of which tones', tones.toFixed(2));
  print(
    `${inTurn} calls in turn, CPU time per frame, µs`,
    best(() => callsInTurn(framesOf)).toFixed(2),
  );
  const received = recordings.slice(0, runs).map(receivedAudioUs);
  const fastest = (part: 'whole' | 'lost') => Math.min(...received.map((us) => us[part]));
  print('jitter buffer, CPU time per frame, µs', fastest('whole').toFixed(2));
  print('  to conceal a lost frame', fastest('lost').toFixed(2));
}

/**
 * Feeds many calls in turn, as a worker does. When the next frame of a call comes, its state has
 * left the CPU cache.
 */
function callsInTurn(recordings: readonly (readonly Int16Array[])[]): number {
  const calls = Array.from({ length: inTurn }, (_, index) => ({
    detector: createDetector(settings),
    frames: recordings[index % recordings.length] ?? [],
    at: 0,
  }));
  const startMs = threadCpuMs();
  for (let round = 0; round < turns; round += 1) {
    for (const call of calls) {
      const frame = call.frames[call.at % call.frames.length];
      if (frame !== undefined) call.detector.push(frame, false);
      call.at += 1;
      if (call.detector.done) call.detector = createDetector(settings);
    }
  }
  for (const { detector } of calls) detector.stop('recording-ended');
  return ((threadCpuMs() - startMs) * 1_000) / (inTurn * turns);
}

type Part = { push(frame: Int16Array): void; end?(): void };

function perFrame(recordings: readonly (readonly Int16Array[])[], create: () => Part): number {
  return best(() => {
    let frames = 0;
    const startMs = threadCpuMs();
    for (const recording of recordings) {
      const part = create();
      for (const frame of recording) part.push(frame);
      frames += recording.length;
      part.end?.();
    }
    return ((threadCpuMs() - startMs) * 1_000) / frames;
  });
}

function best(run: () => number): number {
  return Math.min(...Array.from({ length: runs }, run));
}

function cut(samples: Int16Array): Int16Array[] {
  return Array.from({ length: Math.floor(samples.length / frameSamples) }, (_, index) =>
    samples.slice(index * frameSamples, (index + 1) * frameSamples),
  );
}

async function callsOfOneCore(steps: readonly number[], seconds: number): Promise<void> {
  console.log('\ncalls under detection, RTP in and out, one media worker (one thread)');
  const row = (cells: readonly string[]) =>
    console.log(`  ${cells.map((c) => c.padStart(11)).join('')}`);
  row(['calls', 'core', 'µs/frame', 'late p50', 'p99', 'p99.9', 'max', 'lost']);
  await using bench = await openBench();
  await bench.raiseTo(steps[0] ?? 0);
  await sleep(settleMs);
  const rtpAlone = await measure(bench, seconds);
  bench.detect();
  let carried = 0;
  let cost = 0;
  for (const calls of steps) {
    await bench.raiseTo(calls);
    await sleep(settleMs);
    let measured = await measure(bench, seconds);
    // Late frames on a worker that is not busy mean that another process had the CPU. Measures
    // again.
    if (measured.lateMs.p999 >= latestMs && measured.core < busyCore) {
      measured = await measure(bench, seconds);
    }
    cost = perFrameUs(measured);
    const { p50, p99, p999, max } = measured.lateMs;
    row([
      String(calls),
      `${(measured.core * 100).toFixed(0)} %`,
      cost.toFixed(1),
      ...[p50, p99, p999, max].map((ms) => `${ms.toFixed(1)} ms`),
      `${((100 * measured.lost) / measured.frames).toFixed(2)} %`,
    ]);
    if (p999 >= latestMs) break;
    carried = calls;
  }
  print(
    'RTP in and out without detection, CPU time per frame, µs',
    perFrameUs(rtpAlone).toFixed(1),
  );
  print('one core carries, with p99.9 of lateness under 20 ms', `${carried} calls`);
  print('by CPU time alone (20 ms / CPU time per frame)', `${Math.floor(20_000 / cost)} calls`);
}

/** Prints the CPU time of the media worker with RTP and with SRTP, each with detection. */
async function srtpBesideRtp(
  steps: readonly number[],
  { seconds, media, rounds }: { seconds: number; media: string; rounds: number },
): Promise<void> {
  for (const calls of steps) {
    console.log(`${calls} calls under detection, CPU time of the media worker per frame, µs`);
    const costsUs = { rtp: [] as number[], srtp: [] as number[] };
    for (const turn of turnsOf(media, rounds)) {
      await using bench = await openBench(turn);
      bench.detect();
      await bench.raiseTo(calls);
      await sleep(settleMs);
      const costUs = perFrameUs(await measure(bench, seconds));
      print(turn.toUpperCase(), costUs.toFixed(1));
      costsUs[turn].push(costUs);
    }
    printRatio(costsUs);
  }
}

type Measured = WorkerFigures & { readonly core: number; readonly sent: number };

async function measure(bench: Bench, seconds: number): Promise<Measured> {
  await bench.read();
  const before = await bench.sent();
  const startMs = performance.now();
  await sleep(seconds * 1_000);
  const figures = await bench.read();
  const sent = (await bench.sent()) - before;
  return { ...figures, sent, core: figures.cpuMs / (performance.now() - startMs) };
}

/**
 * Returns the CPU time per frame. A frame is a packet in, a packet out and, with detection, one
 * step of the detector.
 */
function perFrameUs({ cpuMs, frames, sent }: Measured): number {
  // A late clock skips packets to send, but no frame that came in.
  return (cpuMs * 1_000) / Math.max(frames, sent);
}

type Bench = AsyncDisposable & {
  raiseTo(calls: number): Promise<void>;
  /** Puts all present and future calls under detection. */
  detect(): void;
  /** Returns the number of packets sent so far. */
  sent(): Promise<number>;
  read(): Promise<WorkerFigures>;
};

async function openBench(farEnds: Media = 'rtp'): Promise<Bench> {
  const media = createMediaPort({
    host: '127.0.0.1',
    publicHost: '127.0.0.1',
    portMin: 20_000,
    portMax: 29_999,
    workers: 1,
    inactivityTimeoutMs: 60_000,
    silenceIntervalMs: 200,
    logger: silentLogger,
    detectorModule: new URL('./amd-detector.ts', import.meta.url).href,
  });
  await media.ready();
  const sender = fork(fileURLToPath(new URL('./amd-sender.ts', import.meta.url)), {
    execArgv: ['--import', 'tsx'],
  });
  const [{ port }] = (await once(sender, 'message')) as [{ port: number }];
  const channel = new BroadcastChannel(channelName);
  const sessions: MediaSession[] = [];
  let detecting = false;
  return {
    async raiseTo(count) {
      const calls: ToSender['calls'][number][] = [];
      while (sessions.length < count) {
        const { session, keys } = await place(media, sessions.length, { port, media: farEnds });
        const [, ownPort = ''] = /^m=audio (\d+)/m.exec(session.offerSdp) ?? [];
        if (detecting) session.send({ kind: 'detect', settings });
        sessions.push(session);
        calls.push({ port: Number(ownPort), ...(keys !== undefined && { keys }) });
      }
      sender.send({ calls } satisfies ToSender);
    },
    detect() {
      detecting = true;
      for (const session of sessions) session.send({ kind: 'detect', settings });
    },
    async sent() {
      return (await media.statistics()).packetsSent;
    },
    async read() {
      const answer = new Promise<WorkerFigures>((resolve) => {
        channel.onmessage = (message) => resolve((message as { data: WorkerFigures }).data);
      });
      channel.postMessage('read');
      return await answer;
    },
    async [Symbol.asyncDispose]() {
      channel.close();
      sender.disconnect();
      await once(sender, 'exit');
      await media[Symbol.asyncDispose]();
    },
  };
}

const deaf: MediaObserver = {
  observe: (event) => {
    if (event.kind === 'failed') console.error(event.reason);
  },
};

async function place(
  media: MediaGateway,
  index: number,
  farEnd: { readonly port: number; readonly media: Media },
): Promise<{ readonly session: MediaSession; readonly keys?: KeyTexts }> {
  const session = await media.open(`call-${index}` as CallId, deaf, {
    codecs: ['PCMU'],
    encryption: encryptionOf[farEnd.media],
  });
  if (session === undefined) throw new Error('no media session');
  const { sdp, ...answer } = answerTo(session.offerSdp, farEnd.port);
  session.applyAnswer(sdp, 'answer');
  return { session, ...answer };
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function print(what: string, value: string): void {
  console.log(`  ${what.padEnd(60)} ${value}`);
}
