// npm run test:faults -- --seconds 600 --seed 42: the storm for as long as you like. Without a seed a new one each time,
// which is printed, so that the script of a failure can be had again.

import { parseArgs } from 'node:util';
import { Client } from 'pg';
import { eventually } from '../support/eventually.ts';
import { startPostgres } from '../support/postgres-server.ts';
import { runStorm } from './storm.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    seed: { type: 'string' },
    rate: { type: 'string', default: '10' },
    /** Seconds from one fault to the next, 2 means 1 to 3. At 1 and below several nodes are hit at once all the time. */
    every: { type: 'string', default: '2' },
    /** A folder for the nodes' logs. */
    logs: { type: 'string' },
  },
});
const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(values.seed);
const seconds = Number(values.seconds);
const callsPerSecond = Number(values.rate);
const everyMs = Number(values.every) * 1_000;
if (
  ![seed, seconds, callsPerSecond, everyMs].every((value) => Number.isFinite(value) && value >= 0)
) {
  throw new Error('--seconds, --seed, --rate and --every are numbers');
}
const say = (line: string): void => void process.stdout.write(`${line}\n`);

/** False: it is still starting up. */
async function createDatabase(url: string): Promise<boolean> {
  const client = new Client({ connectionString: url });
  try {
    await client.connect();
    await client.query('create database storm');
    return true;
  } catch {
    return false;
  } finally {
    await client.end();
  }
}

const postgres = await startPostgres();
try {
  await eventually(() => createDatabase(postgres.url), 'PostgreSQL takes statements');
  say(`seed ${seed}, ${seconds} s, ${callsPerSecond} calls a second`);
  const databaseUrl = postgres.url.replace('/postgres?', '/storm?');
  const report = await runStorm({
    ...{ seed, seconds, callsPerSecond, databaseUrl },
    faultEveryMs: { from: everyMs / 2, to: everyMs * 1.5 },
    log: say,
    ...(values.logs !== undefined && { logFolder: values.logs }),
  });
  say(JSON.stringify(report.counts, undefined, 2));
  for (const violation of report.violations) say(`VIOLATED  ${violation}`);
  const count = report.violations.length;
  say(count === 0 ? 'every invariant holds' : `${count} violations; seed ${seed}`);
  process.exitCode = count === 0 ? 0 : 1;
} finally {
  await postgres.stop();
}
