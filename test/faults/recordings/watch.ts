// Asks the gateways every second how they are: late ticks, CPU, memory, and what they say about the
// store of recordings.

import { setTimeout as pause } from 'node:timers/promises';
import { cpuSeconds, residentBytes } from '../../release/bench/process-usage.ts';
import type { GatewayProcess } from '../../support/gateway-process.ts';

export type Sample = {
  readonly at: number;
  readonly pid: number;
  readonly ticksLate: number;
  readonly cpuS: number;
  readonly residentMb: number;
  /** What `/metrics` says. */
  readonly isStoreUp: boolean;
  readonly waiting: number;
  /** What `/ready` says about the store. */
  readonly storeState: string;
};

const everyMs = 1_000;
const answerTimeoutMs = 5_000;

export class Watch {
  readonly samples: Sample[] = [];
  readonly #nodes: () => readonly GatewayProcess[];
  readonly #over = new AbortController();
  readonly #running: Promise<void>;

  constructor(nodes: () => readonly GatewayProcess[]) {
    this.#nodes = nodes;
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#over.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#over;
    while (!signal.aborted) {
      // A gateway may be killed while it is asked.
      const taken = await Promise.all(
        this.#nodes().map((node) => sampleOf(node).catch(() => undefined)),
      );
      this.samples.push(...taken.flatMap((sample) => sample ?? []));
      await pause(everyMs, undefined, { signal }).catch(() => undefined);
    }
  }
}

async function sampleOf({ child: { pid = 0 }, runtime }: GatewayProcess): Promise<Sample> {
  const signal = AbortSignal.timeout(answerTimeoutMs);
  const at = Date.now();
  const metrics = await (await fetch(`${runtime.httpUrl}/metrics`, { signal })).text();
  const metric = (name: string): number =>
    Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(metrics)?.[1] ?? 0);
  const ready = (await (await fetch(`${runtime.httpUrl}/ready`, { signal })).json()) as {
    readonly servers?: readonly { readonly name: string; readonly state: string }[];
  };
  return {
    ...{ at, pid, cpuS: await cpuSeconds(pid), residentMb: (await residentBytes(pid)) / 1e6 },
    ticksLate: metric('offhook_media_ticks_late_total'),
    isStoreUp: metric('offhook_recording_store_up') === 1,
    waiting: metric('offhook_recordings_waiting'),
    storeState:
      ready.servers?.find(({ name }) => name === 'Store of recordings')?.state ?? 'unknown',
  };
}

export type Usage = { readonly minutes: number; readonly ticksLate: number; readonly cpuS: number };

/** Sums what the gateways used while `isWanted` held. */
export function usageOf(samples: readonly Sample[], isWanted: (at: number) => boolean): Usage {
  const last = new Map<number, Sample>();
  const sum = { minutes: 0, ticksLate: 0, cpuS: 0 };
  for (const sample of samples) {
    const before = last.get(sample.pid);
    last.set(sample.pid, sample);
    if (before === undefined || !isWanted(before.at) || !isWanted(sample.at)) continue;
    sum.minutes += (sample.at - before.at) / 60_000;
    sum.ticksLate += Math.max(0, sample.ticksLate - before.ticksLate);
    sum.cpuS += sample.cpuS - before.cpuS;
  }
  return sum;
}
