// Twelve clients of one token request lists of calls that don't exist, as fast as they can, while
// people talk and calls are placed at a low rate. Measures what the clients take away from the
// calls.

import { performance } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import type { Pool } from 'pg';
import type { Cluster } from '../../support/cluster.ts';
import { eventually } from '../../support/eventually.ts';
import { numberFor } from '../../support/far-end.ts';
import type { GatewayProcess } from '../../support/gateway-process.ts';
import { percentile } from './process-usage.ts';

const clients = 12;
const people = 10;
const dialsPerSecond = 2;
const sampleMs = 100;
/** What exists in no list. An older commit refuses the filters that it doesn't know. */
const absent = [
  'outcome=bot-failure',
  'metadata[orderId]=none',
  'verdict=amd_error',
  'outcome=bot-failure&limit=200',
];

export type Storm = {
  readonly cluster: Cluster;
  readonly gateways: readonly GatewayProcess[];
  readonly pool: Pool;
  readonly seconds: number;
};

export async function storm({ cluster, gateways, pool, seconds }: Storm): Promise<void> {
  const nodes = [...gateways];
  const talking = await Promise.all(
    Array.from({ length: people }, (_, index) => place(nodes[index % nodes.length], 'stay', index)),
  );
  const isUp = () =>
    cluster.farEnd.calls.filter((call) => call.acknowledgedAt !== undefined).length;
  await eventually(() => isUp() >= people, 'people talk');
  const quiet = await dialSteadily(nodes, 10, 1_000);
  const abort = new AbortController();
  const requests = { answered: 0, refused: 0, ms: [] as number[] };
  const running = Array.from({ length: clients }, (_, index) =>
    requestForever(nodes[0], absent[index % absent.length] ?? '', abort.signal, requests),
  );
  const leases = sampleLeases(pool, abort.signal);
  const loud = await dialSteadily(nodes, seconds, 5_000);
  abort.abort();
  await Promise.all(running);
  const oldestLeaseMs = await leases;
  const lost = talking.filter((number) => hasEnded(cluster, number)).length;
  const dialled = loud.numbers.filter((number) => !isAnswered(cluster, number)).length;
  console.log(`\n  ${clients} clients of one token list what does not exist, for ${seconds} s`);
  print('requests answered', `${(requests.answered / seconds).toFixed(1)} a second`);
  print('requests refused (503, 400)', `${(requests.refused / seconds).toFixed(1)} a second`);
  print('a request', times(requests.ms));
  print('a dial-out before', times(quiet.ms));
  print(
    'a dial-out meanwhile',
    `${times(loud.ms)}, ${loud.failed} of ${loud.ms.length + loud.failed} failed`,
  );
  print('oldest lease', `${oldestLeaseMs.toFixed(0)} ms`);
  print('calls placed meanwhile that reached nobody', `${dialled} of ${loud.numbers.length}`);
  print('people who were disconnected', `${lost} of ${people}`);
  print('gateways that ended', String(nodes.filter(({ child }) => child.exitCode !== null).length));
}

async function place(
  gateway: GatewayProcess | undefined,
  behaviour: 'stay' | 'talk',
  index: number,
): Promise<string> {
  const number = numberFor(behaviour, 5, index);
  if (gateway === undefined) throw new Error('no gateway');
  await gateway.dialer.dial({ target: `tel:+${number}` });
  return number;
}

async function dialSteadily(nodes: readonly GatewayProcess[], seconds: number, firstIndex: number) {
  const ms: number[] = [];
  const numbers: string[] = [];
  let failed = 0;
  const dials: Promise<void>[] = [];
  for (let index = 0; index < seconds * dialsPerSecond; index += 1) {
    const dial = async (): Promise<void> => {
      const startedAt = performance.now();
      try {
        numbers.push(await place(nodes[index % nodes.length], 'talk', firstIndex + index));
        ms.push(performance.now() - startedAt);
      } catch {
        failed += 1;
      }
    };
    dials.push(dial());
    await pause(1_000 / dialsPerSecond);
  }
  await Promise.all(dials);
  await pause(2_000);
  return { ms, numbers, failed };
}

async function requestForever(
  gateway: GatewayProcess | undefined,
  query: string,
  signal: AbortSignal,
  requests: { answered: number; refused: number; readonly ms: number[] },
): Promise<void> {
  let cursor: string | undefined;
  while (!signal.aborted && gateway !== undefined) {
    const startedAt = performance.now();
    const more = cursor === undefined ? '' : `&cursor=${cursor}`;
    try {
      const { status, body } = await gateway.dialer.request(
        'GET',
        `/api/public/calls?${query}${more}`,
      );
      cursor = (body as { readonly nextCursor?: string }).nextCursor;
      if (status === 200) requests.answered += 1;
      else {
        requests.refused += 1;
        // A filter that this version doesn't know would only measure the refusal.
        if (status === 400) return await requestForever(gateway, absent[0] ?? '', signal, requests);
      }
      requests.ms.push(performance.now() - startedAt);
    } catch {
      requests.refused += 1;
      await pause(100);
    }
  }
}

async function sampleLeases(pool: Pool, signal: AbortSignal): Promise<number> {
  let oldest = 0;
  while (!signal.aborted) {
    const { rows } = await pool.query<{ ms: number }>(
      `select coalesce(max(extract(epoch from clock_timestamp() - renewed_at) * 1000), 0)::double precision as ms from nodes where lost_at is null`,
    );
    oldest = Math.max(oldest, rows[0]?.ms ?? 0);
    await pause(sampleMs);
  }
  return oldest;
}

function hasEnded({ farEnd }: Cluster, number: string): boolean {
  return farEnd.calls.some((call) => call.number === number && call.endedAt !== undefined);
}

function isAnswered({ farEnd }: Cluster, number: string): boolean {
  return farEnd.calls.some((call) => call.number === number && call.answeredAt !== undefined);
}

function times(ms: readonly number[]): string {
  const at = (share: number) => percentile(ms, share).toFixed(0);
  return `median ${at(0.5)} ms, p99 ${at(0.99)} ms, longest ${at(1)} ms`;
}

function print(what: string, value: string): void {
  console.log(`    ${what.padEnd(48)} ${value}`);
}
