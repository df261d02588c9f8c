// The console under load: 1,000 live calls and 50 events a second. Measures the frame times and the
// memory of the list of calls in Chromium. Also measures the CPU use that ten open consoles add to
// the gateway, in alternating rounds of one run.

import { setTimeout as pause } from 'node:timers/promises';
import { Pool } from 'pg';
import type { Page } from 'playwright-core';
import { connectEvents } from '../../../src/events/connection.ts';
import { silentLogger } from '../../../src/lib/logger.ts';
import { launch } from '../../console/stage.ts';
import { startCluster } from '../../support/cluster.ts';
import type { GatewayProcess } from '../../support/gateway-process.ts';
import { startPostgres } from '../../support/postgres-server.ts';
import { commandOf } from '../../support/process-tree.ts';
import { optionsOf } from './options.ts';
import { cpuSeconds, memoryOf, percentile, processTree } from './process-usage.ts';

const calls = 1_000;
const eventsASecond = 50;
/** Events are published one by one, as calls do. */
const tickMs = 20;
const consoles = 10;
const mostFrameMs = 100;
const mostPageMb = 150;
const mostCpuPercent = 5;
/** The owner of the calls is not a gateway but the bench, so that no gateway takes them over. */
const ownerId = 'bench/rows';

export async function benchConsole(args: readonly string[]): Promise<void> {
  const { seconds, rounds, pages } = optionsOf(args, { seconds: 10, rounds: 2, pages: 1 });
  const postgres = await startPostgres();
  const cluster = await startCluster({ databaseUrl: postgres.url });
  const pool = new Pool({ connectionString: postgres.url, max: 2 });
  const { url } = cluster.nats;
  const events = await connectEvents({
    ...{ url, prefix: 'offhook', name: 'bench', logger: silentLogger },
  });
  try {
    const gateway = await cluster.startNode('console');
    await storeCalls(pool, gateway.dialer.app.appId);
    const traffic = startTraffic(pool, (callId) =>
      events.nats.publish(`offhook.call.test.bot-1.${callId}.dtmf`, '{}'),
    );
    for (let page = 0; page < pages; page += 1) await benchPage(gateway, seconds);
    if (rounds > 0) await benchConsoles(gateway, rounds);
    console.log(`\n${calls} calls, ${traffic.rate().toFixed(0)} events a second`);
    await traffic.stop();
  } finally {
    await events.close();
    await pool.end();
    await cluster[Symbol.asyncDispose]();
    await postgres.stop();
  }
}

// ── Traffic ──────────────────────────────────────────────────────────────────────────────────────

async function storeCalls(pool: Pool, appId: string): Promise<void> {
  await pool.query(
    `insert into nodes (owner_id, node_id, version, started_at, renewed_at, steady_since, lease_until, calls, draining, question_key)
     values ($1, 'bench', '0', now(), now(), now(), now() + interval '1 day', 0, false, 'k')`,
    [ownerId],
  );
  await pool.query(
    `insert into calls (call_id, sid, conversation_id, account_id, app_id, bot_id, request, state, status, accepted_at,
       dial_started_at, owner_id, ringing_at, answered_at, dial_before, last_event_sequence)
     select 'call-' || gen_random_uuid(), 'sid-' || n, gen_random_uuid()::text, 'test', $1, 'bot-' || n % 3,
       json_build_object('target', json_build_object('kind', 'tel', 'number', (12025550000 + n)::text),
         'caller', '15559876543', 'machineDetection', 'detect', 'metadata', json_build_object()),
       'answered', 'answered', now() - n * interval '0.2 s', now(), $2, now(), now(), now() + interval '1 hour', 1
     from generate_series(1, $3::integer) n`,
    [appId, ownerId, calls],
  );
}

/** Changes the state of some calls and adds an event to each, as in a campaign. */
const tickStatement = `
with changed as (
  update calls set last_event_sequence = last_event_sequence + 1,
    state = case state when 'answered' then 'ringing' else 'answered' end,
    status = case status when 'answered' then 'ringing' else 'answered' end
  where call_id in (select call_id from calls where owner_id = $1 order by random() limit $2)
  returning call_id, day, last_event_sequence)
insert into call_events (day, call_id, event_sequence, event_id, type, time, data)
select day, call_id, last_event_sequence, 'evt-' || gen_random_uuid(), 'dtmf', now(), '{"digit":"1","source":"rtp"}' from changed
returning call_id`;

function startTraffic(pool: Pool, publish: (callId: string) => void) {
  const startedAt = performance.now();
  let isStopped = false;
  let count = 0;
  const run = async (): Promise<void> => {
    while (!isStopped) {
      const owed = Math.floor(((performance.now() - startedAt) / 1_000) * eventsASecond) - count;
      const limit = Math.min(owed, 2 * eventsASecond);
      if (limit > 0) {
        const { rows } = await pool.query<{ call_id: string }>(tickStatement, [ownerId, limit]);
        for (const { call_id: callId } of rows) publish(callId);
        count += rows.length;
      }
      await pause(tickMs);
    }
  };
  const running = run();
  return {
    rate: () => (count / (performance.now() - startedAt)) * 1_000,
    stop: async () => {
      isStopped = true;
      await running;
    },
  };
}

// ── The page ─────────────────────────────────────────────────────────────────────────────────────

async function benchPage(gateway: GatewayProcess, seconds: number): Promise<void> {
  const browser = await launch();
  try {
    const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
    await page.goto(await linkOf(gateway));
    await page.getByRole('link', { name: 'Calls', exact: true }).first().click();
    await page.locator('.calls tbody tr').nth(40).waitFor();
    await page.getByText('Live', { exact: true }).waitFor();
    const devtools = await page.context().newCDPSession(page);
    await devtools.send('Performance.enable');
    const frames = await watchFrames(page, seconds);
    const { metrics } = await devtools.send('Performance.getMetrics');
    const heapMb = (metrics.find(({ name }) => name === 'JSHeapUsedSize')?.value ?? 0) / 2 ** 20;
    const renderer = await largestRenderer();
    console.log(`\nChromium on the list of calls, ${seconds} s`);
    const longest = Math.max(...frames.gapsMs);
    const over = (ms: number) => String(frames.gapsMs.filter((gap) => gap > ms).length);
    print('frames', `${frames.gapsMs.length}`, frames.gapsMs.length > seconds);
    print('p99 of frame times', `${percentile(frames.gapsMs, 0.99).toFixed(0)} ms`, true);
    print('longest frame', `${longest.toFixed(0)} ms`, longest < mostFrameMs);
    print('frames over 50 ms', over(50), true);
    print(`frames over ${mostFrameMs} ms`, over(mostFrameMs), over(mostFrameMs) === '0');
    print('longest task of the page', `${Math.max(0, ...frames.tasksMs).toFixed(0)} ms`, true);
    print(
      'long animation frames',
      frames.longMs.map((ms) => ms.toFixed(0)).join(', ') || 'none',
      true,
    );
    print('changes of the rows', `${frames.changes}`, frames.changes > 0);
    print('JavaScript heap', `${heapMb.toFixed(1)} MB`, heapMb < mostPageMb);
    print('process of the page (PSS)', `${renderer.toFixed(0)} MB`, renderer < mostPageMb);
  } finally {
    await browser.close();
  }
}

type Frames = {
  readonly gapsMs: readonly number[];
  readonly tasksMs: readonly number[];
  /** Durations of the frames that Chromium itself calls long: over 50 ms. */
  readonly longMs: readonly number[];
  readonly changes: number;
};

async function watchFrames(page: Page, seconds: number): Promise<Frames> {
  return (await page.evaluate(`new Promise((resolve) => {
    const gapsMs = [];
    const tasksMs = [];
    const longMs = [];
    let changes = 0;
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) tasksMs.push(duration);
    }).observe({ entryTypes: ['longtask'] });
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) longMs.push(duration);
    }).observe({ entryTypes: ['long-animation-frame'] });
    new MutationObserver(() => { changes += 1; })
      .observe(document.querySelector('.calls tbody'), { subtree: true, childList: true, characterData: true });
    const end = performance.now() + ${seconds * 1_000};
    let last;
    const frame = (now) => {
      if (last !== undefined) gapsMs.push(now - last);
      last = now;
      if (now < end) requestAnimationFrame(frame);
      else resolve({ gapsMs, tasksMs, longMs, changes });
    };
    requestAnimationFrame(frame);
  })`)) as Frames;
}

async function largestRenderer(): Promise<number> {
  const pids = await processTree(process.pid);
  const renderers = pids.filter((pid) => commandOf(pid).includes('--type=renderer'));
  const sizes = await Promise.all(renderers.map(memoryOf));
  return Math.max(0, ...sizes.map(({ proportionalMb }) => proportionalMb));
}

// ── Ten consoles ─────────────────────────────────────────────────────────────────────────────────

const roundMs = 4_000;
/** The time in which the gateway reads what newly opened consoles need. */
const settleMs = 1_000;

/**
 * The requests of a console. `none` means that no console is open. `events and list` also reads the
 * list every two seconds if there were events.
 */
const modes = ['none', 'events', 'events and list'] as const;
type Mode = (typeof modes)[number];

async function benchConsoles(gateway: GatewayProcess, rounds: number): Promise<void> {
  const cookies = await Promise.all(Array.from({ length: consoles }, () => signIn(gateway)));
  const shares: Record<Mode, number[]> = { none: [], events: [], 'events and list': [] };
  let events = 0;
  for (let round = 0; round < rounds * modes.length; round += 1) {
    const mode = modes[round % modes.length] ?? 'none';
    const open = (mode === 'none' ? [] : cookies).map((cookie) =>
      openConsole(gateway.runtime.httpUrl, cookie, mode),
    );
    shares[mode].push(await cpuShare(gateway));
    events += (await Promise.all(open.map((one) => one.close()))).reduce((sum, n) => sum + n, 0);
  }
  const mean = (values: readonly number[]) => values.reduce((a, b) => a + b, 0) / values.length;
  console.log(
    `\nCPU use of the gateway, % of a core: no console, ${consoles} consoles that follow events, ${consoles} that also read the list; ${rounds} alternating rounds`,
  );
  const list = (values: readonly number[]) => values.map((value) => value.toFixed(1)).join(', ');
  for (const mode of modes) print(mode, list(shares[mode]), true);
  for (const mode of ['events', 'events and list'] as const) {
    const more = mean(shares[mode]) - mean(shares.none);
    print(`${mode}: added CPU use`, more.toFixed(1), more <= mostCpuPercent);
  }
  print('received events', `${events}`, events > 0);
}

async function cpuShare({ runtime: { pid } }: GatewayProcess): Promise<number> {
  await pause(settleMs);
  const [cpu, at] = [await cpuSeconds(pid), performance.now()];
  await pause(roundMs);
  return ((await cpuSeconds(pid)) - cpu) / ((performance.now() - at) / 1_000 / 100);
}

async function linkOf({ dialer }: GatewayProcess): Promise<string> {
  const { body } = await dialer.request('POST', '/console/link');
  return (body as { readonly url: string }).url;
}

async function signIn(gateway: GatewayProcess): Promise<string> {
  const { httpUrl } = gateway.runtime;
  const answer = await fetch(`${httpUrl}/console/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: httpUrl },
    body: JSON.stringify({ token: (await linkOf(gateway)).split('token=')[1] }),
  });
  return answer.headers.get('set-cookie')?.split(';')[0] ?? '';
}

function openConsole(httpUrl: string, cookie: string, mode: Mode) {
  const abort = new AbortController();
  const { signal } = abort;
  const ask = (path: string) =>
    fetch(`${httpUrl}/console/api/public/${path}`, { headers: { cookie }, signal });
  let events = 0;
  let seen = 0;
  const follow = async (): Promise<void> => {
    const { body } = await ask('events');
    const decoder = new TextDecoder();
    for await (const chunk of body ?? []) {
      events += decoder.decode(chunk as Uint8Array).split('\ndata: ').length - 1;
    }
  };
  const read = async (): Promise<void> => {
    while (!signal.aborted) {
      // Reads at the same interval as the page when events keep coming.
      await pause(2_000, undefined, { signal });
      if (events === seen) continue;
      seen = events;
      await (await ask('calls?limit=50')).arrayBuffer();
    }
  };
  const all = mode === 'events' ? [follow()] : [follow(), read()];
  const working = all.map((one) => one.catch(() => undefined));
  return {
    async close(): Promise<number> {
      abort.abort();
      await Promise.all(working);
      return events;
    },
  };
}

function print(what: string, value: string, isFine: boolean): void {
  console.log(`  ${what.padEnd(40)} ${value}${isFine ? '' : '   (misses the goal)'}`);
  if (!isFine) process.exitCode = 1;
}
