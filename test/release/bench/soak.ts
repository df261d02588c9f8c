// A soak test: many concurrent calls with streams begin and end over a long time. Checks that the
// memory of the gateway stays constant after the first minutes, and that the clock of its media is
// not late more often than any clock on this machine.

import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { randomFrom } from '../../faults/random.ts';
import { type Cluster, startCluster } from '../../support/cluster.ts';
import { eventually } from '../../support/eventually.ts';
import { type FarCall, numberFor } from '../../support/far-end.ts';
import { freeUdpPort } from '../../support/free-port.ts';
import type { GatewayProcess } from '../../support/gateway-process.ts';
import { startPostgres } from '../../support/postgres-server.ts';
import { isTerminal, type Received } from '../../support/receiver.ts';
import { BareTicker } from './bare-ticker.ts';
import { percentile, residentBytes } from './process-usage.ts';
import { SoakBots } from './soak-bots.ts';
import { SoakPhones } from './soak-phones.ts';

const sampleEveryMs = 5_000;
/**
 * After this time the code is compiled and all caches are filled. From then on the memory must stay
 * constant.
 */
const warmUpMinutes = 5;
/** The allowed growth, as a share of the resident memory after the first minutes. */
const mayGrow = 0.05;
/** How many more ticks a worker may be late than a thread that only ticks. */
const mayBeLate = 5;
const endsWithinMs = 60_000;
/**
 * The longest speech. A bot may talk for ten minutes, and not beyond the audio that the gateway
 * buffers for it.
 */
const longestSpeechMs = 590_000;

type Sample = {
  readonly minute: number;
  readonly residentMb: number;
  /** Late ticks of the gateway since the start. */
  readonly ticksLate: number;
  /** Late ticks of the bare thread since the start. */
  readonly bareTicksLate: number;
};

export async function benchSoak(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      minutes: { type: 'string', default: '30' },
      streams: { type: 'string', default: '50' },
      seed: { type: 'string', default: '1' },
      /** Sends the notifications to a port where no receiver listens. */
      'dead-receiver': { type: 'boolean', default: false },
    },
  });
  const minutes = Number(values.minutes);
  const postgres = await startPostgres();
  const phones = await SoakPhones.start();
  const bots = await SoakBots.start(randomFrom(Number(values.seed)));
  const cluster = await startCluster({ databaseUrl: postgres.url, audioPort: phones.port });
  const ticker = new BareTicker();
  try {
    const gateway = await cluster.startNode('soak', { MEDIA_WORKERS: '1' });
    const notifyUrl = values['dead-receiver']
      ? `http://127.0.0.1:${await freeUdpPort()}/`
      : cluster.receiver.url;
    const soak = new Soak({ cluster, gateway, phones, bots, notifyUrl }, Number(values.streams));
    const samples: Sample[] = [];
    await soak.run(minutes, async (minute) => {
      samples.push(await sampleOf(gateway, ticker, minute));
    });
    const isWell = [
      judgeMemory(samples, minutes),
      judgeClock(samples, minutes),
      judgeSpeeches(bots),
      judgeEnds(cluster, bots),
    ];
    printCounters(await metricsOf(gateway));
    print('bots', JSON.stringify(bots.counts));
    print('phones called; packets heard', `${cluster.farEnd.calls.length}; ${phones.packetsHeard}`);
    if (isWell.includes(false)) process.exitCode = 1;
  } finally {
    await ticker.stop();
    await cluster[Symbol.asyncDispose]();
    bots.close();
    phones.close();
    await postgres.stop();
  }
}

type SoakParts = {
  readonly cluster: Cluster;
  readonly gateway: GatewayProcess;
  readonly phones: SoakPhones;
  readonly bots: SoakBots;
  readonly notifyUrl: string;
};

class Soak {
  readonly #parts: SoakParts;
  readonly #streams: number;
  readonly #callIds = new Map<string, string>();
  #dialled = 0;

  constructor(parts: SoakParts, streams: number) {
    this.#parts = parts;
    this.#streams = streams;
  }

  /** Runs the calls and waits for their end. Calls `look` every few seconds. */
  async run(minutes: number, look: (minute: number) => Promise<void>): Promise<void> {
    const { cluster, phones, bots } = this.#parts;
    const { farEnd } = cluster;
    const startMs = performance.now();
    const speechMs = Math.min(longestSpeechMs, Math.floor(minutes * 36) * 1_000);
    await this.#dial({ speechMs: String(speechMs) });
    for (let looked = 0, minute = 0; minute < minutes; ) {
      minute = (performance.now() - startMs) / 60_000;
      if (looked * sampleEveryMs <= minute * 60_000) {
        looked += 1;
        await look(minute);
      }
      for (let up = farEnd.up; up < this.#streams; up += 1) await this.#dial({});
      phones.speak(farEnd.calls.filter(isUp));
      await pause(250);
    }
    for (const { number } of farEnd.calls.filter(isUp)) await this.#hangUp(number);
    const isOver = async () =>
      farEnd.up + bots.open === 0 && (await this.#ended()) === this.#dialled;
    await eventually(isOver, 'all calls end', endsWithinMs);
  }

  async #dial(parameters: Readonly<Record<string, string>>): Promise<void> {
    const number = numberFor('stay', 0, this.#dialled);
    this.#dialled += 1;
    const { cluster, gateway, bots, notifyUrl } = this.#parts;
    const { callId } = await gateway.dialer.dial({
      target: `tel:+${number}`,
      notifyurl: notifyUrl,
      machineDetection: this.#dialled % 2 === 0 ? 'detect' : 'disabled',
      stream: { url: bots.url, parameters },
    });
    this.#callIds.set(number, callId);
    await eventually(() => cluster.farEnd.calls.length === this.#dialled, 'the phone rings');
  }

  /**
   * Counts the ended calls: by the notifications if there is a receiver, otherwise by the metrics
   * of the gateway.
   */
  async #ended(): Promise<number> {
    const { cluster, gateway, notifyUrl } = this.#parts;
    const { receiver } = cluster;
    if (notifyUrl === receiver.url) return receiver.accepted().filter(isEnd).length;
    const metric = await metricsOf(gateway);
    return this.#dialled - metric('offhook_calls_active');
  }

  async #hangUp(number: string): Promise<void> {
    await this.#parts.gateway.dialer.end(this.#callIds.get(number) ?? '');
  }
}

const isEnd = ({ body }: Received): boolean => isTerminal(body);

function isUp({ acknowledgedAt, endedAt }: FarCall): boolean {
  return acknowledgedAt !== undefined && endedAt === undefined;
}

async function metricsOf(gateway: GatewayProcess): Promise<(name: string) => number> {
  const text = await (await fetch(`${gateway.runtime.httpUrl}/metrics`)).text();
  return (name) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
}

async function sampleOf(
  gateway: GatewayProcess,
  ticker: BareTicker,
  minute: number,
): Promise<Sample> {
  const metric = await metricsOf(gateway);
  return {
    minute,
    residentMb: (await residentBytes(gateway.child.pid ?? 0)) / 1e6,
    ticksLate: metric('offhook_media_ticks_late_total'),
    bareTicksLate: (await ticker.read()).ticksLate,
  };
}

function judgeMemory(samples: readonly Sample[], minutes: number): boolean {
  console.log('resident memory, MB: min, median, max');
  const medians = spansOf(samples, minutes).map(({ name, span }) => {
    const figures = span.map(({ residentMb }) => residentMb);
    const [least, median = 0, most] = [0, 0.5, 1].map((share) => percentile(figures, share));
    print(name, [least, median, most].map((figure) => figure?.toFixed(1)).join(', '));
    return median;
  });
  if (medians.length < 3) return true;
  const grown = (medians.at(-1) ?? 0) / (medians[1] ?? 0) - 1;
  print('growth since the first minutes', `${(grown * 100).toFixed(1)} %`);
  return grown <= mayGrow;
}

function judgeClock(samples: readonly Sample[], minutes: number): boolean {
  console.log('ticks that were more than 60 ms late; the same for a bare thread');
  for (const { name, span } of spansOf(samples, minutes)) {
    const [first, last] = [span[0], span.at(-1)];
    const late = (last?.ticksLate ?? 0) - (first?.ticksLate ?? 0);
    print(name, `${late}; ${(last?.bareTicksLate ?? 0) - (first?.bareTicksLate ?? 0)}`);
  }
  const { ticksLate = 0, bareTicksLate = 0 } = samples.at(-1) ?? {};
  print('total', `${ticksLate}; ${bareTicksLate}`);
  return ticksLate <= bareTicksLate + mayBeLate;
}

/**
 * Splits the samples into spans of five minutes. The last sample of one span is the first of the
 * next.
 */
function spansOf(samples: readonly Sample[], minutes: number) {
  return Array.from({ length: Math.ceil(minutes / warmUpMinutes) }, (_, index) => {
    const [from, to] = [index * warmUpMinutes, Math.min(minutes, (index + 1) * warmUpMinutes)];
    const first = samples.findLastIndex(({ minute }) => minute <= from);
    const span = samples.filter(({ minute }, at) => at >= first && minute < to);
    return { name: `minute ${from} to ${to}`, span };
  });
}

/**
 * Prints how much the marks of a speech drifted: how much later the last ten came than their audio
 * says, compared with the first ten.
 */
function judgeSpeeches({ speeches }: SoakBots): boolean {
  const drifts = speeches.map(({ markedAtMs }) => {
    const late = markedAtMs.map((at, index) => at - index * 1_000);
    return percentile(late.slice(-10), 0.5) - percentile(late.slice(0, 10), 0.5);
  });
  const [first] = speeches;
  print(`drift over ${first?.markedAtMs.length} s of speech, ms`, drifts[0]?.toFixed(1) ?? 'none');
  return drifts.length > 0;
}

function printCounters(metric: (name: string) => number): void {
  for (const name of [
    ...['offhook_rtp_packets_received_total', 'offhook_rtp_packets_sent_total'],
    ...['offhook_rtp_packets_late_total', 'offhook_rtp_packets_unsent_total'],
    ...['offhook_stream_frames_sent_total', 'offhook_stream_frames_dropped_total'],
    ...['offhook_stream_underruns_total', 'offhook_stream_reconnects_total'],
  ]) {
    print(name, String(metric(name)));
  }
}

/**
 * Returns true if no bot is still connected, no number was called twice, and every end was
 * delivered.
 */
function judgeEnds({ farEnd, receiver }: Cluster, bots: SoakBots): boolean {
  const ends = new Set(
    receiver
      .accepted()
      .filter(isEnd)
      .map(({ body }) => body.callId),
  );
  const numbers = new Set(farEnd.calls.map(({ number }) => number));
  print('calls; delivered ends', `${farEnd.calls.length}; ${ends.size}`);
  // All ends, or none if there is no receiver.
  const areDelivered = ends.size === 0 || ends.size === farEnd.calls.length;
  return bots.open === 0 && numbers.size === farEnd.calls.length && areDelivered;
}

function print(what: string, figure: string): void {
  console.log(`  ${what.padEnd(50)} ${figure}`);
}
