// Measures calls per second from the POST to the delivery of the last notification, with 50
// concurrent calls and sipp as the callee. Compares this rate with a bare drachtio-srf loop on the
// same engine. Then measures the delay of `Answered` at a steady 50 calls/s, and the CPU time and
// memory of live calls.

import { createAppIn } from '../../support/apps.ts';
import type { DevApp } from '../../support/dialer-client.ts';
import { eventually } from '../../support/eventually.ts';
import { type GatewayProcess, makeDataDir, startGateway } from '../../support/gateway-process.ts';
import { startPostgres } from '../../support/postgres-server.ts';
import { type Received, startReceiver } from '../../support/receiver.ts';
import { type Sipp, startSipp } from '../../support/sipp.ts';
import { bareLoop } from './bare-srf.ts';
import { heapProbe, liveHeapBytes } from './live-heap.ts';
import { optionsOf } from './options.ts';
import { cpuSeconds, percentile, residentBytes } from './process-usage.ts';
import { type TimedReceiver, timed } from './timed-receiver.ts';

const concurrency = 50;
const pacedPerSecond = 50;
const liveCalls = [500, 2_000] as const;
const usageMs = 6_000;
/** The callee hangs up after this. */
const callMs = 50;
const secretsKey = 'ab'.repeat(32);

type Bench = {
  readonly gateway: GatewayProcess;
  readonly receiver: TimedReceiver;
  readonly sipp: Sipp;
  /** The folder of the sockets through which the threads report their heaps. */
  readonly probeFolder: string;
};

export async function benchCalls(args: readonly string[]): Promise<void> {
  const { seconds, database } = optionsOf(args, { seconds: 20, database: 'both' });
  const bare = await bareLoop({ concurrency, seconds: Math.min(seconds, 10), callMs });
  print('bare drachtio-srf loop on the embedded engine', `${bare.toFixed(0)} calls/s`);
  if (database !== 'postgres') await benchOn('PGlite', seconds, bare);
  if (database !== 'pglite') {
    const postgres = await startPostgres({ fsync: true });
    try {
      await benchOn('PostgreSQL (fsync on)', seconds, bare, postgres.url);
    } finally {
      await postgres.stop();
    }
  }
}

async function benchOn(
  name: string,
  seconds: number,
  bare: number,
  databaseUrl?: string,
): Promise<void> {
  console.log(`\n${name}`);
  const dataDir = await makeDataDir();
  const receiver = timed(await startReceiver());
  const sipp = await startSipp({
    scenario: 'load',
    calls: 10_000_000,
    hangUpAfterMs: callMs,
    keepMessages: false,
    timeoutMs: 600_000,
  });
  const probe = await makeDataDir();
  const app = databaseUrl === undefined ? undefined : await createAppIn(databaseUrl, secretsKey);
  const gateway = await startGateway(
    dataDir.path,
    { NODE_OPTIONS: heapProbe(probe.path), ...variablesFor(databaseUrl) },
    app satisfies DevApp | undefined,
  );
  try {
    const bench = { gateway, receiver, sipp, probeFolder: probe.path };
    await sustained(bench, 3);
    // Measures the live calls before the long run. Otherwise the process would return the garbage
    // of the long run during this measurement.
    await live(bench);
    const rate = await sustained(bench, seconds);
    report(rate, bare);
    await paced(bench, Math.min(seconds, 20));
  } finally {
    await gateway.terminate();
    await sipp.stop();
    await receiver.close();
    await dataDir.remove();
    await probe.remove();
  }
}

function variablesFor(databaseUrl: string | undefined): Record<string, string> {
  if (databaseUrl === undefined) return {};
  return {
    DATABASE_URL: databaseUrl,
    SECRETS_KEY: secretsKey,
    NOTIFY_ALLOWED_NETWORKS: '127.0.0.0/8',
    SIP_ALLOWED_NETWORKS: '127.0.0.0/8',
  };
}

type Sustained = {
  readonly calls: number;
  readonly failed: number;
  readonly seconds: number;
  readonly cpu: number;
};

async function sustained(bench: Bench, seconds: number): Promise<Sustained> {
  const pid = bench.gateway.runtime.pid;
  const cpuBefore = await cpuSeconds(pid);
  const startedAt = performance.now();
  const end = startedAt + seconds * 1_000;
  let calls = 0;
  let failed = 0;
  const caller = async (): Promise<void> => {
    while (performance.now() < end) {
      const last = await placeAndWait(bench);
      calls += 1;
      if (last.body.status !== 'completed') failed += 1;
    }
  };
  await Promise.all(Array.from({ length: concurrency }, caller));
  const elapsed = (performance.now() - startedAt) / 1_000;
  return { calls, failed, seconds: elapsed, cpu: (await cpuSeconds(pid)) - cpuBefore };
}

function report(run: Sustained, bare: number): void {
  const rate = run.calls / run.seconds;
  print(
    'sustained at 50 concurrent',
    `${rate.toFixed(0)} calls/s, ${run.failed} of ${run.calls} failed`,
  );
  print('ratio to the bare loop', (rate / bare).toFixed(2));
  print(
    'CPU time per call (gateway process, all threads)',
    `${((run.cpu / run.calls) * 1_000).toFixed(2)} ms`,
  );
  print(
    'CPU use of the gateway process',
    `${((run.cpu / run.seconds) * 100).toFixed(0)} % of a core`,
  );
}

async function placeAndWait({ gateway, receiver, sipp }: Bench): Promise<Received> {
  const { callId } = await gateway.dialer.dial(viaSipp(sipp, receiver));
  return receiver.ended(callId);
}

function viaSipp(sipp: Sipp, receiver: TimedReceiver) {
  return { target: `sip:callee@127.0.0.1:${sipp.port}`, notifyurl: receiver.url };
}

/**
 * Measures the delay of `Answered`. The notification carries the instant of the 200 OK. The same
 * machine reads both clocks.
 */
async function paced(bench: Bench, seconds: number): Promise<void> {
  const from = bench.receiver.arrivals.length;
  const ended: Promise<unknown>[] = [];
  const startedAt = performance.now();
  for (let index = 0; index < seconds * pacedPerSecond; index += 1) {
    const due = startedAt + (index * 1_000) / pacedPerSecond;
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, due - performance.now())));
    ended.push(placeAndWait(bench));
  }
  await Promise.all(ended);
  const delays = bench.receiver.arrivals
    .slice(from)
    .filter(({ received }) => received.body.status === 'Answered')
    .map(({ received, at }) => at - Date.parse(String(received.body['callConnectTime'])));
  print(
    `200 OK to \`Answered\` at ${pacedPerSecond} calls/s (${delays.length} calls)`,
    `p50 ${percentile(delays, 0.5)} ms, p99 ${percentile(delays, 0.99)} ms`,
  );
}

/**
 * Measures what silent live calls cost. The difference between two numbers of calls leaves out what
 * the process itself costs.
 */
async function live({ gateway, receiver, probeFolder }: Bench): Promise<void> {
  const [few, many] = liveCalls;
  const callee = await startSipp({
    scenario: 'load',
    calls: many,
    hangUpAfterMs: 170_000,
    keepMessages: false,
    timeoutMs: 180_000,
  });
  const placed: string[] = [];
  // A dialer has a few connections. If each request had its own, we would measure them too.
  const raiseTo = async (count: number) => {
    let missing = count - placed.length;
    const caller = async (): Promise<void> => {
      while (missing > 0) {
        missing -= 1;
        const { callId } = await gateway.dialer.dial(viaSipp(callee, receiver));
        placed.push(callId);
      }
    };
    await Promise.all(Array.from({ length: concurrency }, caller));
    await eventually(() => placed.every((id) => receiver.has(id)), 'all are up', 60_000);
    return usage(gateway.runtime.pid, probeFolder);
  };
  const before = await raiseTo(few);
  const after = await raiseTo(many);
  const calls = many - few;
  const kilobytes = (bytes: number) => `${(bytes / calls / 1_024).toFixed(0)} kB`;
  print(
    `memory per live call (${few} → ${many} up): live heap of all threads`,
    kilobytes(after.heapBytes - before.heapBytes),
  );
  print('  resident memory of the process (RSS)', kilobytes(after.pageBytes - before.pageBytes));
  print(
    `resident memory of the process with ${many} live calls`,
    `${(after.pageBytes / 1_048_576).toFixed(0)} MB`,
  );
  print(
    'CPU use per live call (RTP out, silence)',
    `${(((after.cores - before.cores) / calls) * 100).toFixed(3)} % of a core`,
  );
  await Promise.all(placed.map((callId) => gateway.dialer.end(callId)));
  await eventually(() => placed.every((id) => receiver.hasEnded(id)), 'all have ended', 60_000);
  await callee.stop();
}

type LiveUsage = {
  readonly heapBytes: number;
  readonly pageBytes: number;
  readonly cores: number;
};

async function usage(pid: number, probeFolder: string): Promise<LiveUsage> {
  const startedAt = performance.now();
  const cpu = await cpuSeconds(pid);
  await new Promise((resolve) => setTimeout(resolve, usageMs));
  const seconds = (performance.now() - startedAt) / 1_000;
  const cores = ((await cpuSeconds(pid)) - cpu) / seconds;
  const heapBytes = await liveHeapBytes(probeFolder);
  return { heapBytes, pageBytes: await residentBytes(pid), cores };
}

function print(what: string, value: string): void {
  console.log(`  ${what.padEnd(70)} ${value}`);
}
