// Measures how many bytes a call with detection and notifications takes: in PostgreSQL (tables,
// TOAST, indexes, WAL) and in nats-server (streams and buckets). The calls are those of
// `amd-calls`. `--against <commit>` measures another commit first.
//
// PostgreSQL runs with its defaults (full_page_writes on, wal_compression off). Space is read after
// a vacuum, and WAL from a checkpoint until all calls are settled, without the vacuum. A full-page
// image is written once per page and checkpoint, so their number depends on the sizes of the
// tables and on the time between checkpoints. Their bytes therefore have a column of their own.

import { parseArgs } from 'node:util';
import { startReceiver } from '../../support/receiver.ts';
import { startCallee } from './amd-calls-callee.ts';
import { startMeasured } from './amd-calls-gateway.ts';
import { type Load, placeCalls, type World } from './amd-calls-load.ts';
import { type Build, buildHere, buildOf } from './build-of-commit.ts';
import { readStreams } from './bytes-nats.ts';
import { type Growth, openDatabaseSizes } from './bytes-postgres.ts';
import { timed } from './timed-receiver.ts';

/** Gives each table and index its first pages, and PostgreSQL its caches. */
const warmUpCalls = 50;

export async function benchBytes(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      calls: { type: 'string', default: '300' },
      rate: { type: 'string', default: '15' },
      against: { type: 'string' },
    },
  });
  const load = { calls: Number(values.calls), rate: Number(values.rate) };
  await using here = buildHere();
  await using other = values.against === undefined ? undefined : await buildOf(values.against);
  await using callee = await startCallee();
  const receiver = timed(await startReceiver());
  try {
    for (const build of other === undefined ? [here] : [other, here])
      await measure(build, { callee, receiver }, load);
  } finally {
    await receiver.close();
  }
}

async function measure(build: Build, world: World, load: Load): Promise<void> {
  await using side = await startMeasured(build, { embedded: false, index: 0 });
  if (side.postgresUrl === undefined) throw new Error('the bench needs PostgreSQL');
  await using sizes = await openDatabaseSizes(side.postgresUrl);
  await placeCalls(side.gateway, world, { ...load, calls: warmUpCalls });
  await sizes.start();
  const streamsBefore = await readStreams(side.natsMonitorPort);
  const { wrong } = await placeCalls(side.gateway, world, load);
  const growth = await sizes.finish();
  const streams = await readStreams(side.natsMonitorPort);
  console.log(`\n${build.name}: bytes per call, ${load.calls} calls`);
  printSpace(growth, load.calls);
  printWal(growth, load.calls);
  printStreams(streamsBefore, streams, load.calls);
  if (wrong.length > load.calls / 50) {
    process.exitCode = 1;
    console.log(`  FAILED: ${wrong.length} calls got a wrong verdict, so they are other calls`);
  }
}

function printSpace({ tables }: Growth, calls: number): void {
  row('PostgreSQL, on disk', ['rows', 'of rows', 'table+TOAST', 'indexes', 'sum']);
  const sums = [0, 0, 0];
  for (const { name, rows, rowBytes, heapBytes, indexes } of tables) {
    const indexBytes = indexes.reduce((sum, { bytes }) => sum + bytes, 0);
    const all = [heapBytes, indexBytes, heapBytes + indexBytes];
    for (const [place, bytes] of all.entries()) sums[place] = (sums[place] ?? 0) + bytes;
    row(`  ${name}`, [(rows / calls).toFixed(1), ...perCall([rowBytes, ...all], calls)]);
    for (const index of indexes) {
      row(`    ${index.name}`, ['', '', '', ...perCall([index.bytes], calls)]);
    }
  }
  row('  all tables', ['', '', ...perCall(sums, calls)]);
}

function printWal({ wal, walBytes }: Growth, calls: number): void {
  row('PostgreSQL, WAL', ['records', 'bytes', 'full pages']);
  for (const { name, records, bytes, imageBytes } of wal) {
    if (bytes + imageBytes < calls) continue;
    row(`  ${name}`, [(records / calls).toFixed(1), ...perCall([bytes, imageBytes], calls)]);
  }
  const sum = (of: (part: Growth['wal'][number]) => number): number =>
    wal.reduce((total, part) => total + of(part), 0);
  const sums = [sum(({ bytes }) => bytes), sum(({ imageBytes }) => imageBytes)];
  row('  all records', [
    (sum(({ records }) => records) / calls).toFixed(1),
    ...perCall(sums, calls),
  ]);
  row('  all, by pg_current_wal_lsn', ['', ...perCall([walBytes], calls)]);
}

function printStreams(
  before: Awaited<ReturnType<typeof readStreams>>,
  after: Awaited<ReturnType<typeof readStreams>>,
  calls: number,
): void {
  row('NATS', ['messages', 'bytes']);
  let sum = 0;
  for (const [name, { messages, bytes }] of after) {
    const earlier = before.get(name) ?? { messages: 0, bytes: 0 };
    if (messages === earlier.messages) continue;
    sum += bytes - earlier.bytes;
    row(`  ${name}`, [
      ((messages - earlier.messages) / calls).toFixed(1),
      ...perCall([bytes - earlier.bytes], calls),
    ]);
  }
  row('  all streams', ['', ...perCall([sum], calls)]);
}

function perCall(bytes: readonly number[], calls: number): readonly string[] {
  return bytes.map((each) => (each / calls).toFixed(0));
}

function row(what: string, values: readonly string[]): void {
  console.log(`  ${what.padEnd(40)}${values.map((value) => value.padStart(13)).join('')}`);
}
