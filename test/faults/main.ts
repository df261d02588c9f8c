// npm run test:faults -- --seconds 600 --seed 42: the storm for as long as you like. Without a seed a new one each time,
// which is printed, so that the script of a failure can be had again.
// npm run test:faults -- --outages 15 --gateways 3: outages of PostgreSQL while people talk, and how
// many of them are hung up; `--build FOLDER` tries the `dist` of another version.

import { parseArgs } from 'node:util';
import { Client } from 'pg';
import { eventually } from '../support/eventually.ts';
import { type PostgresServer, startPostgres } from '../support/postgres-server.ts';
import { runOutages } from './outages.ts';
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
    /** How many, in place of the storm. */
    outages: { type: 'string' },
    gateways: { type: 'string', default: '2' },
    build: { type: 'string' },
  },
});
const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(values.seed);
const seconds = Number(values.seconds);
const callsPerSecond = Number(values.rate);
const everyMs = Number(values.every) * 1_000;
const outages = Number(values.outages ?? 0);
const gateways = Number(values.gateways);
const numbers = [seed, seconds, callsPerSecond, everyMs, outages, gateways];
if (!numbers.every((value) => Number.isFinite(value) && value >= 0)) {
  throw new Error('--seconds, --seed, --rate, --every, --outages and --gateways are numbers');
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

/** Whether all went as it should. */
async function storm(databaseUrl: string): Promise<boolean> {
  say(`seed ${seed}, ${seconds} s, ${callsPerSecond} calls a second`);
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
  return count === 0;
}

/** Whether all went as it should. */
async function sufferOutages(postgres: PostgresServer, databaseUrl: string): Promise<boolean> {
  say(`seed ${seed}, ${outages} outages, ${gateways} gateways`);
  const report = await runOutages({
    ...{ seed, outages, gateways, callsEach: 7, postgres, databaseUrl, log: say },
    ...(values.build !== undefined && { build: values.build }),
  });
  say(JSON.stringify(report, undefined, 2));
  return report.hungUp === 0;
}

const postgres = await startPostgres();
try {
  await eventually(() => createDatabase(postgres.url), 'PostgreSQL takes statements');
  const databaseUrl = postgres.url.replace('/postgres?', '/storm?');
  const isFine =
    outages > 0 ? await sufferOutages(postgres, databaseUrl) : await storm(databaseUrl);
  process.exitCode = isFine ? 0 : 1;
} finally {
  await postgres.stop();
}
