// The recording run: calls are recorded while gateways are killed, the bucket is away, slow or
// refuses, and the disk of the spool is full. Afterwards each recording is compared, sample by
// sample, with what its phone sent and heard. The first fifth of the run has no faults, so that the
// figures show what the machine does anyway.

import { setTimeout as pause } from 'node:timers/promises';
import { isTerminal, type StreamEvent, storiesOf } from '../aftermath.ts';
import { type Random, randomFrom } from '../random.ts';
import { eventsOnStream } from '../stream-dump.ts';
import {
  type CallStory,
  differentStories,
  type Figures,
  RecordingChecks,
} from './recording-checks.ts';
import {
  alertsOnStream,
  BucketReader,
  type SeenAlert,
  spoolFolders,
} from './recording-evidence.ts';
import { type FaultSpan, recordingFaults, suffer } from './recording-faults.ts';
import { RecordingWorld } from './recording-world.ts';
import { type Sample, usageOf, Watch } from './watch.ts';

export type RecordingRunOptions = {
  readonly seed: number;
  readonly calls: number;
  readonly seconds: number;
  readonly gateways: number;
  /** The URL of an empty database. */
  readonly databaseUrl: string;
  readonly log: (line: string) => void;
};

export type RecordingReport = {
  readonly violations: readonly string[];
  readonly counts: Figures;
};

const calmShare = 0.2;
/** The rest of a fault's time, in which its consequences end. */
const faultShare = 0.75;
const recordedShare = 0.85;
const encryptedShare = 0.25;
/** Longer than the wait for a lost owner, the next look at the spool, and the first retries. */
const settledWithinMs = 300_000;

/** The third failed attempt of a recording raises an alert. A shorter fault may pass before it. */
const alertedAfterMs = 45_000;

export async function runRecordings(options: RecordingRunOptions): Promise<RecordingReport> {
  const { databaseUrl, gateways, log } = options;
  await using world = await RecordingWorld.start({
    ...{ databaseUrl, gateways, hasSmallDisk: true },
  });
  const watch = new Watch(() => [...world.nodes.values()]);
  const startedAt = Date.now();
  const say = (line: string): void =>
    log(`${((Date.now() - startedAt) / 1_000).toFixed(0)} s  ${line}`);
  const [faults] = await Promise.all([sufferAll(world, options, say), placeAll(world, options)]);
  await world.calm();
  await untilAnnounced(world, say);
  await watch.stop();
  return await judge(world, faults, watch.samples);
}

async function placeAll(world: RecordingWorld, options: RecordingRunOptions): Promise<void> {
  const random = randomFrom(options.seed);
  const everyMs = (options.seconds * 1_000) / options.calls;
  const startedAt = performance.now();
  const placing: Promise<void>[] = [];
  for (let index = 0; index < options.calls; index += 1) {
    placing.push(world.place(drawCall(random, index)));
    await pause(Math.max(0, startedAt + (index + 1) * everyMs - performance.now()));
  }
  await Promise.all(placing);
}

function drawCall(random: Random, index: number) {
  return {
    index,
    talkMs: random.between(8_000, 25_000),
    isRecorded: random.next() < recordedShare,
    isEncrypted: random.next() < encryptedShare,
  };
}

async function sufferAll(
  world: RecordingWorld,
  { seconds, seed }: RecordingRunOptions,
  say: (line: string) => void,
): Promise<readonly FaultSpan[]> {
  await pause(calmShare * seconds * 1_000);
  const slotMs = ((1 - calmShare) * seconds * 1_000) / recordingFaults.length;
  const random = randomFrom(seed + 1);
  const spans: FaultSpan[] = [];
  for (const kind of recordingFaults.toSorted(() => random.next() - 0.5)) {
    const startedAt = performance.now();
    say(kind);
    const span = await suffer(world, kind, faultShare * slotMs);
    spans.push(span);
    say(`${kind} is over`);
    await pause(Math.max(0, startedAt + slotMs - performance.now()));
  }
  return spans;
}

/** Waits until every call has ended and the spool is empty. */
export async function untilAnnounced(
  world: RecordingWorld,
  say: (line: string) => void,
): Promise<void> {
  const startedAt = performance.now();
  for (;;) {
    const { up } = world.parts.cluster.farEnd;
    const left = await spoolFolders(world);
    const { receiver } = world.parts.cluster;
    const ended = world.calls.filter(({ callId }) => receiver.of(callId).some(isEnd)).length;
    if (up + left.length === 0 && ended === world.calls.length) break;
    if (performance.now() - startedAt > settledWithinMs) {
      say(
        `gave up waiting: ${up} phones up, ${ended} calls ended, in the spool ${left.join(', ')}`,
      );
      break;
    }
    await pause(500);
  }
  say('nothing is under way');
  // What was stored last is yet to be published and POSTed.
  await pause(5_000);
}

const isEnd = ({ status }: { readonly status: string }): boolean => isTerminal(status);

async function judge(
  world: RecordingWorld,
  faults: readonly FaultSpan[],
  samples: readonly Sample[],
): Promise<RecordingReport> {
  const { stories, checks } = await checkAll(world, faults);
  const left = await spoolFolders(world);
  const alerts = await alertsOnStream(world.parts.cluster.nats.url);
  return {
    violations: [
      ...checks.violations,
      ...differentStories(stories).map((odd) => `a call was touched: ${odd}`),
      ...left.map((folder) => `left in the spool: ${folder}`),
      ...faults.flatMap((fault) => unreported(fault, samples, alerts, stories)),
    ],
    counts: {
      ...{
        calls: world.calls.length,
        recorded: world.calls.filter((call) => call.isRecorded).length,
      },
      ...checks.figures,
      ...world.parts.proxy.counts,
      alerts: alerts.length,
      ...usage(faults, samples),
    },
  };
}

/** Checks every call. */
export async function checkAll(world: RecordingWorld, faults: readonly FaultSpan[]) {
  await using reader = new BucketReader(world);
  const stories = await storiesIn(world);
  const checks = new RecordingChecks(world, reader, faults);
  for (const story of stories) await checks.check(story);
  return { stories, checks };
}

async function storiesIn(world: RecordingWorld): Promise<readonly CallStory[]> {
  const { nats, receiver } = world.parts.cluster;
  const events = await eventsOnStream(nats.url);
  const byCall = new Map<string, readonly StreamEvent[]>(
    storiesOf({ events }).map((story) => [story[0]?.callId ?? '', story]),
  );
  const posts = new Map<string, string[]>();
  for (const { rawBody } of receiver.accepted()) {
    const { type, callId, id } = JSON.parse(rawBody) as Partial<StreamEvent>;
    if (!/^recording-(stored|failed)$/.test(type ?? '') || id === undefined) continue;
    posts.set(callId ?? '', [...(posts.get(callId ?? '') ?? []), id]);
  }
  return world.calls.map((call) => ({
    call,
    events: byCall.get(call.callId) ?? [],
    posts: posts.get(call.callId) ?? [],
  }));
}

/** Returns what didn't report a fault that it should have reported. */
function unreported(
  { kind, from, to }: FaultSpan,
  samples: readonly Sample[],
  alerts: readonly SeenAlert[],
  stories: readonly CallStory[],
): readonly string[] {
  const during = samples.filter(({ at }) => at >= from && at <= to + 10_000);
  const isAlerted =
    to - from < alertedAfterMs || alerts.some(({ at }) => at >= from && at <= to + 60_000);
  const expected: Readonly<Partial<Record<FaultSpan['kind'], Record<string, boolean>>>> = {
    'store-away': storeReports(during, isAlerted),
    revoked: storeReports(during, isAlerted),
    'disk-full': { event: isFullIn(stories, from, to + 10_000), alert: isAlerted },
  };
  return Object.entries(expected[kind] ?? {})
    .filter(([, isThere]) => !isThere)
    .map(([report]) => `${kind} is not reported: ${report}`);
}

function storeReports(during: readonly Sample[], alert: boolean): Record<string, boolean> {
  return {
    '/ready': during.some(({ storeState }) => storeState === 'away'),
    'the store in the metrics': during.some(({ isStoreUp }) => !isStoreUp),
    'waiting recordings in the metrics': during.some(({ waiting }) => waiting > 0),
    alert,
  };
}

function isFullIn(stories: readonly CallStory[], from: number, to: number): boolean {
  return stories.some(({ events }) =>
    events.some(({ type, data, time }) => {
      const at = Date.parse(time);
      return (
        type === 'recording-failed' && data['reason'] === 'disk-full' && at >= from && at <= to
      );
    }),
  );
}

/** Late ticks and CPU without faults and with them. */
function usage(faults: readonly FaultSpan[], samples: readonly Sample[]): Figures {
  const first = Math.min(...faults.map(({ from }) => from));
  const calm = usageOf(samples, (at) => at < first);
  const figures: Figures = {
    'calm: late ticks per minute': round(calm.ticksLate / calm.minutes),
    'calm: CPU seconds per minute': round(calm.cpuS / calm.minutes),
  };
  for (const { kind, from, to } of faults) {
    const during = usageOf(samples, (at) => at >= from && at <= to);
    figures[`${kind}: late ticks per minute`] = round(during.ticksLate / during.minutes);
    figures[`${kind}: CPU seconds per minute`] = round(during.cpuS / during.minutes);
  }
  return figures;
}

const round = (value: number): number => Math.round(value * 10) / 10;
