// The detector in the worker of the bench. It wraps the real detector and measures how late each
// frame came. When the detection of a call has stopped, it starts another one, so that every call
// is under detection all the time.

import { BroadcastChannel } from 'node:worker_threads';
import { createDetector as createReal } from '../../../src/amd/detector.ts';
import type { CreateDetector } from '../../../src/media/detector-port.ts';
import { channelName, type WorkerFigures } from './amd-figures.ts';
import { threadCpuMs } from './process-usage.ts';

const frameMs = 20;
/**
 * One bin is a tenth of a millisecond. The last bin counts everything that is later than a second.
 */
const bins = 10_000;

const late = new Uint32Array(bins);
let frames = 0;
let lost = 0;
let cpuBeforeMs = threadCpuMs();

const channel = new BroadcastChannel(channelName);
channel.onmessage = (message) => {
  if ((message as { data: unknown }).data !== 'read') return;
  const cpuMs = threadCpuMs();
  channel.postMessage({
    frames,
    lost,
    cpuMs: cpuMs - cpuBeforeMs,
    lateMs: percentiles(),
  } satisfies WorkerFigures);
  cpuBeforeMs = cpuMs;
  late.fill(0);
  frames = 0;
  lost = 0;
};

channel.unref();

export const createDetector: CreateDetector = (settings) => {
  let real = createReal(settings);
  let pushed = 0;
  // The start of a clock by which no frame is early: the earliest frame is on time.
  let startMs = Number.POSITIVE_INFINITY;
  return {
    done: false,
    push(frame, isLost) {
      const nowMs = performance.now();
      startMs = Math.min(startMs, nowMs - pushed * frameMs);
      const bin = Math.floor((nowMs - startMs - pushed * frameMs) * 10);
      const kept = Math.min(bins - 1, bin);
      late[kept] = (late[kept] ?? 0) + 1;
      pushed += 1;
      frames += 1;
      if (isLost) lost += 1;
      const events = real.push(frame, isLost);
      if (real.done) real = createReal(settings);
      return events;
    },
    stop(reason) {
      return real.stop(reason);
    },
  };
};

function percentiles(): WorkerFigures['lateMs'] {
  const at = (share: number): number => {
    let left = Math.ceil(share * frames);
    for (const [bin, count] of late.entries()) {
      left -= count;
      if (left <= 0) return bin / 10;
    }
    return 0;
  };
  return { p50: at(0.5), p99: at(0.99), p999: at(0.999), max: at(1) };
}
