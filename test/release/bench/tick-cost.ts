// What the ticks of a media worker cost, as `tick-cost-worker.ts` measures in the worker. The main
// thread requests the figures with `read` on this channel.

import { BroadcastChannel } from 'node:worker_threads';
import { percentile } from './process-usage.ts';

export const channelName = 'offhook-bench-tick-cost';

/** What happened since the last reading. */
export type TickCost = {
  /** CPU time of each tick. A tick handles all sessions, and its last packet leaves at its end. */
  readonly tickMs: readonly number[];
  /** How long each garbage collection stopped the thread. */
  readonly collectionMs: readonly number[];
  /** CPU time of the thread. */
  readonly cpuMs: number;
};

/** Put this in place of the detector's module. */
export const tickCostModule = new URL('./tick-cost-worker.ts', import.meta.url).href;

export async function readTickCost(): Promise<TickCost> {
  const channel = new BroadcastChannel(channelName);
  const answer = new Promise<TickCost>((resolve) => {
    channel.onmessage = (message) => resolve((message as { data: TickCost }).data);
  });
  channel.postMessage('read');
  const cost = await answer;
  channel.close();
  return cost;
}

export function printTickCost({ tickMs, collectionMs, cpuMs }: TickCost): void {
  const inTicksMs = tickMs.reduce((sum, ms) => sum + ms, 0);
  const readingMs = (cpuMs - inTicksMs) / tickMs.length;
  print('CPU time of a tick, ms', tickMs);
  console.log(`  ${'CPU time between two ticks, ms'.padEnd(50)} ${readingMs.toFixed(1)}`);
  print('garbage collections of the worker, ms', collectionMs);
}

function print(what: string, values: readonly number[]): void {
  const [p50, p99, most] = [0.5, 0.99, 1].map((share) => percentile(values, share).toFixed(1));
  console.log(`  ${what.padEnd(50)} p50 ${p50}, p99 ${p99}, max ${most} of ${values.length}`);
}
