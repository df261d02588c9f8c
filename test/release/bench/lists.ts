// Lists of many calls, over HTTP and on PostgreSQL. Measures each filter with and without a match:
// the time of a request, and the blocks that its statements read. Then twelve clients of one token
// request what doesn't exist, without a pause, while calls are placed at a low rate.
//
// `--commit <commit>` measures an older commit's build instead, with the same script. With
// `--calls 10000000`, it needs 20 GB of disk and half an hour.

import { performance } from 'node:perf_hooks';
import { Pool } from 'pg';
import { appCreatorOf } from '../../faults/talking.ts';
import { startCluster } from '../../support/cluster.ts';
import { eventually } from '../../support/eventually.ts';
import type { GatewayProcess } from '../../support/gateway-process.ts';
import { startPostgres } from '../../support/postgres-server.ts';
import { buildHere, buildOf } from './build-of-commit.ts';
import { fillCalls } from './lists-fill.ts';
import { storm } from './lists-storm.ts';
import { optionsOf } from './options.ts';
import { percentile } from './process-usage.ts';

const rounds = 5;
const goalMs = 200;
/** A list that needs more requests than this to reach its end is not followed further. */
const maxPages = 200;

export async function benchLists(args: readonly string[]): Promise<void> {
  const options = optionsOf(args, { calls: 1_000_000, bots: 6, seconds: 30, commit: '' });
  await using build = options.commit === '' ? buildHere() : await buildOf(options.commit);
  const isOlder = options.commit !== '';
  const postgres = await startPostgres({
    settings: [
      ...['shared_preload_libraries=pg_stat_statements', 'pg_stat_statements.track=all'],
      // Filling writes tens of gigabytes.
      ...['max_wal_size=8GB', 'checkpoint_timeout=30min', 'maintenance_work_mem=512MB'],
    ],
  });
  const pool = new Pool({ connectionString: postgres.url, max: 3 });
  // The server may stop before the idle connections close.
  pool.on('error', () => undefined);
  try {
    await using cluster = await startCluster({
      ...{ databaseUrl: postgres.url, createApp: appCreatorOf(isOlder ? build.folder : undefined) },
    });
    console.log(`\n${build.name}: ${options.calls} calls of ${options.bots} bots`);
    const startedAt = performance.now();
    await fillCalls(pool, options);
    await pool.query('create extension if not exists pg_stat_statements');
    await printSizes(pool, options.calls, performance.now() - startedAt);
    const gateways: GatewayProcess[] = [];
    for (const name of ['a', 'b']) {
      gateways.push(await cluster.startNode(name, {}, isOlder ? build.folder : undefined));
    }
    const [gateway] = gateways;
    if (gateway === undefined) throw new Error('no gateway has started');
    await eventually(
      async () => (await gateway.dialer.request('GET', '/ready')).status === 200,
      'the gateway is ready',
    );
    await measureFilters(gateway, pool);
    await storm({ cluster, gateways, pool, seconds: options.seconds });
  } finally {
    await pool.end();
    await postgres.stop();
  }
}

async function printSizes(pool: Pool, calls: number, ms: number): Promise<void> {
  const { rows } = await pool.query<{ name: string; bytes: number }>(
    `select relname as name, pg_relation_size(oid)::double precision as bytes from pg_class
     where relname like 'calls%' or relname like 'call_totals%' order by relname`,
  );
  console.log(`  filled in ${(ms / 1_000).toFixed(0)} s; bytes per call:`);
  for (const { name, bytes } of rows) row(`  ${name}`, (bytes / calls).toFixed(0));
}

// ── Filters ──────────────────────────────────────────────────────────────────────────────────────

async function measureFilters(gateway: GatewayProcess, pool: Pool): Promise<void> {
  console.log('\n  one request: median and longest of 5, blocks; then the list to its end');
  row('  list', 'median', 'longest', 'blocks', 'calls', 'pages', 'all pages');
  const cases = await casesFor(pool);
  for (const scope of ['/api/public', '/api/public/bot/bot-3']) {
    for (const [name, query] of cases) {
      await measureFilter(gateway, pool, `${scope}/calls`, [`${scope.slice(11)} ${name}`, query]);
    }
  }
}

/** Pairs of a name and a query, with and without a match. */
async function casesFor(pool: Pool): Promise<readonly (readonly [string, string])[]> {
  const { rows } = await pool.query<{
    call_id: string;
    number: string;
    order: string;
    day: string;
  }>(
    `select call_id, request #>> '{target,number}' as number, request #>> '{metadata,orderId}' as order,
       to_char(accepted_at, 'YYYY-MM-DD') as day
     from calls where bot_id = 'bot-3' and accepted_at < now() - interval '20 days' order by accepted_at desc limit 1`,
  );
  const keys = await pool.query<{ key: string }>(
    `select idempotency_key as key from calls where account_id = 'test' and idempotency_key > '' limit 1`,
  );
  const [call] = rows;
  const [{ key } = { key: '' }] = keys.rows;
  if (call === undefined) throw new Error('there are no calls to look for');
  const { call_id: callId, number, order, day } = call;
  return [
    ['no filter', ''],
    ['no filter, 200 calls', 'limit=200'],
    ['state=ended', 'state=ended'],
    ['state=queued, absent', 'state=queued'],
    ['status=completed', 'status=completed'],
    ['status=machineDetected, absent', 'status=machineDetected'],
    ['outcome=busy', 'outcome=busy'],
    ['outcome=expired, rare', 'outcome=expired'],
    ['outcome=bot-failure, absent', 'outcome=bot-failure'],
    ['verdict=amd_human_detected', 'verdict=amd_human_detected'],
    ['verdict=amd_error, absent', 'verdict=amd_error'],
    ['number', `number=%2B${number}`],
    ['number, absent', 'number=%2B12029999999'],
    ['campaign', 'campaign=campaign-7'],
    ['campaign, absent', 'campaign=none'],
    ['campaign, outcome absent', 'campaign=campaign-7&outcome=bot-failure'],
    ['metadata, old call', `metadata[orderId]=${order}`],
    ['metadata, absent', 'metadata[orderId]=none'],
    ['metadata within its day', `metadata[orderId]=${order}&day=${day}`],
    ['metadata, outcome absent', 'metadata[orderId]=none&outcome=bot-failure'],
    ['day', `day=${day}&timeZone=Europe/Berlin`],
    ['day, absent', 'day=2020-01-01'],
    ['from, to', `from=${day}T00:00:00Z&to=${day}T01:00:00Z`],
    ['idempotencyKey', `idempotencyKey=${key}`],
    ['idempotencyKey, absent', 'idempotencyKey=none'],
    ['callIdPrefix', `callIdPrefix=${callId.slice(0, 11)}`],
    ['callIdPrefix, outcome absent', `callIdPrefix=${callId.slice(0, 9)}&outcome=bot-failure`],
    ['outcome and verdict, absent', 'outcome=busy&verdict=amd_human_detected'],
    ['summary of today', 'summary'],
    ['summary of 28 days', summaryOf(28)],
  ];
}

function summaryOf(days: number): string {
  const dayMs = 86_400_000;
  const at = (ms: number) => new Date(Math.floor(ms / dayMs) * dayMs).toISOString();
  return `summary?from=${at(Date.now() - days * dayMs)}&to=${at(Date.now())}&timeZone=UTC`;
}

async function measureFilter(
  { dialer }: GatewayProcess,
  pool: Pool,
  path: string,
  [name, query]: readonly [string, string],
): Promise<void> {
  const separator = query.startsWith('summary') ? '/' : '?';
  const ask = async (cursor?: string) => {
    const startedAt = performance.now();
    const more = cursor === undefined ? '' : `&cursor=${cursor}`;
    const answer = await dialer.request('GET', `${path}${separator}${query}${more}`);
    const page = answer.body as { calls?: readonly unknown[]; nextCursor?: string };
    return { ...answer, page, ms: performance.now() - startedAt };
  };
  await pool.query('select pg_stat_statements_reset()');
  const first = await ask();
  const blocks = await blocksRead(pool);
  if (first.status !== 200) {
    row(`  ${name}`, `${first.ms.toFixed(0)} ms`, `HTTP ${first.status}`, String(blocks));
    return;
  }
  const times = [first.ms];
  for (let round = 1; round < rounds; round += 1) times.push((await ask()).ms);
  const { pages, ms } = await followed(ask, first.page.nextCursor);
  const longest = Math.max(...times);
  row(
    `  ${name}`,
    `${percentile(times, 0.5).toFixed(1)} ms`,
    `${longest.toFixed(0)} ms${longest > goalMs ? ' !' : ''}`,
    String(blocks),
    String(first.page.calls?.length ?? '-'),
    `${pages + 1}${pages === maxPages ? '+' : ''}`,
    `${((first.ms + ms) / 1_000).toFixed(1)} s`,
  );
}

type Ask = (cursor: string) => Promise<{
  readonly ms: number;
  readonly page: { readonly calls?: readonly unknown[]; readonly nextCursor?: string };
}>;

/** Follows a list without calls to its first call or its end, as a person would. */
async function followed(ask: Ask, cursor: string | undefined) {
  let next = cursor;
  let [pages, ms] = [0, 0];
  while (next !== undefined && pages < maxPages) {
    const answer = await ask(next);
    pages += 1;
    ms += answer.ms;
    next = (answer.page.calls ?? []).length > 0 ? undefined : answer.page.nextCursor;
  }
  return { pages, ms };
}

async function blocksRead(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ blocks: number }>(
    `select coalesce(sum(shared_blks_hit + shared_blks_read), 0)::double precision as blocks from pg_stat_statements
     where query like '%accepted_at%' or query like '%call_totals%'`,
  );
  return rows[0]?.blocks ?? 0;
}

function row(name: string, ...values: readonly string[]): void {
  console.log(`${name.padEnd(48)}${values.map((value) => value.padStart(11)).join('')}`);
}
