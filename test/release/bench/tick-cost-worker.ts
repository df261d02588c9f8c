// Runs in a media worker, in place of the detector's module. Measures the CPU time of each tick:
// the time that it took, less the time for which the thread waited for a core. So the figures hold
// on a quiet machine, too. Also records garbage collections, including waits for a core.

import { PerformanceObserver } from 'node:perf_hooks';
import { BroadcastChannel } from 'node:worker_threads';
import { PlayoutClock } from '../../../src/media/playout/playout.ts';
import { threadCpuMs, threadWaitMs } from './process-usage.ts';
import { channelName, type TickCost } from './tick-cost.ts';

export { createDetector } from '../../../src/amd/detector.ts';

let tickMs: number[] = [];
let collectionMs: number[] = [];
let cpuBeforeMs = threadCpuMs();

const clock = PlayoutClock.prototype;
const run = Reflect.get(clock, 'run') as PlayoutClock['run'];
clock.run = function (nowMs, tick) {
  return run.call(this, nowMs, (transmit, dueMs) => {
    const [startMs, waitedMs] = [performance.now(), threadWaitMs()];
    tick(transmit, dueMs);
    tickMs.push(performance.now() - startMs - (threadWaitMs() - waitedMs));
  });
};

new PerformanceObserver((list) => {
  for (const { duration } of list.getEntries()) collectionMs.push(duration);
}).observe({ entryTypes: ['gc'] });

const channel = new BroadcastChannel(channelName);
channel.onmessage = (message) => {
  if ((message as { data: unknown }).data !== 'read') return;
  const cpuMs = threadCpuMs();
  channel.postMessage({ tickMs, collectionMs, cpuMs: cpuMs - cpuBeforeMs } satisfies TickCost);
  cpuBeforeMs = cpuMs;
  [tickMs, collectionMs] = [[], []];
};
channel.unref();
