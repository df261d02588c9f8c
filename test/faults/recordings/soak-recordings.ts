// Records many calls for a long time, without faults, and reports memory and late ticks of the
// gateways minute by minute.

import { setTimeout as pause } from 'node:timers/promises';
import { BareTicker } from '../../release/bench/bare-ticker.ts';
import { differentStories, type Figures } from './recording-checks.ts';
import { RecordingWorld } from './recording-world.ts';
import { checkAll, type RecordingReport, untilAnnounced } from './run-recordings.ts';
import { type Sample, usageOf, Watch } from './watch.ts';

export type SoakOptions = {
  readonly minutes: number;
  readonly calls: number;
  readonly gateways: number;
  readonly databaseUrl: string;
  readonly log: (line: string) => void;
};

const placeEveryMs = 100;
const minuteMs = 60_000;

export async function runRecordingSoak(options: SoakOptions): Promise<RecordingReport> {
  const { calls, minutes, log } = options;
  await using world = await RecordingWorld.start({ ...options, hasSmallDisk: false });
  const ticker = new BareTicker();
  const watch = new Watch(() => [...world.nodes.values()]);
  for (let index = 0; index < calls; index += 1) {
    await world.place({
      ...{ index, talkMs: minutes * minuteMs, isRecorded: true, isEncrypted: index % 4 === 0 },
    });
    await pause(placeEveryMs);
  }
  await world.calm();
  const startedAt = Date.now();
  for (let minute = 1; minute <= minutes; minute += 1) {
    await pause(minuteMs);
    const bare = (await ticker.read()).ticksLate;
    log(`${lineOf(watch.samples, startedAt, minute)}, a bare clock ${bare} in all`);
  }
  await untilAnnounced(world, log);
  await watch.stop();
  await ticker.stop();
  const { stories, checks } = await checkAll(world, []);
  const touched = differentStories(stories).map((odd) => `a call was touched: ${odd}`);
  return {
    violations: [...checks.violations, ...touched],
    counts: { ...checks.figures, ...memory(watch.samples) },
  };
}

function lineOf(samples: readonly Sample[], startedAt: number, minute: number): string {
  const from = startedAt + (minute - 1) * minuteMs;
  const { ticksLate, cpuS } = usageOf(samples, (at) => at >= from && at < from + minuteMs);
  const memories = [...latestOf(samples)].map(({ residentMb }) => `${Math.round(residentMb)} MB`);
  return `minute ${minute}: ${memories.join(', ')}; CPU ${cpuS.toFixed(1)} s; late ticks ${ticksLate}`;
}

function latestOf(samples: readonly Sample[]): Iterable<Sample> {
  return new Map(samples.map((sample) => [sample.pid, sample])).values();
}

function memory(samples: readonly Sample[]): Figures {
  const residents = samples.map(({ residentMb }) => residentMb);
  return {
    'most memory in MB': Math.round(Math.max(...residents)),
    'last memory in MB': Math.round(
      Math.max(...[...latestOf(samples)].map((one) => one.residentMb)),
    ),
  };
}
