// `npm run test:faults -- --seconds 600 --seed 42` runs the storm for as long as you like. Without
// `--seed` each run draws a new seed and prints it, so that you can repeat the script of a failure.
//
// `npm run test:faults -- --servers --seconds 900` hits the servers under two gateways one after
// the other, and reports what users lost. `--only fail-over-15,nats-disk-full` chooses the faults.
//
// `npm run test:faults -- --outages 15 --gateways 3` makes PostgreSQL unavailable while people
// talk, and counts the calls that are hung up. `npm run test:faults -- --failovers 5` does the same
// with fail-overs to a standby behind haproxy, five of each length. `--build FOLDER` tries the
// `dist` of another version.
//
// `npm run test:faults -- --hours 48 --seconds 900` lets two days pass within a quarter of an hour,
// on PostgreSQL and on PGlite.
//
// `npm run test:faults -- --rules 200000` dials this many calls of accounts with calling rules on
// PostgreSQL, and then on PGlite, and looks for INVITEs that the rules forbid. SIP is scripted.
//
// `npm run test:faults -- --meter 10000` dials this many calls of three campaigns, and compares the
// campaigns' figures with a second count from the logs of phones and bots. `--rate 12` is the calls
// per second, `--gateways 2` the gateways, and `--kills 2` kills that many of them during the run.
// `--databases pglite` uses one gateway with its embedded database.
//
// `npm run test:faults -- --recording --calls 100 --seconds 300` records calls while gateways are
// killed, the bucket is away, slow or refuses, and the spool's disk is full. It compares each
// recording with what its phone said and heard, and needs root to mount a small disk.
// `--soak-minutes 60 --recorded 200` records this many calls for an hour instead, without faults.
//
// `--drachtio PATH` runs the storm, or `--servers`, with a real drachtio-server in place of the
// embedded SIP engine.

import { parseArgs } from 'node:util';
import { Client } from 'pg';
import { eventually } from '../support/eventually.ts';
import { startPostgresPair } from '../support/postgres-pair.ts';
import { type PostgresServer, startPostgres } from '../support/postgres-server.ts';
import { runDays } from './days.ts';
import { runFailovers } from './failovers.ts';
import { runMeter } from './meter/run-meter.ts';
import { runOutages } from './outages.ts';
import { runRecordings } from './recordings/run-recordings.ts';
import { runRecordingSoak } from './recordings/soak-recordings.ts';
import { runRules } from './rules/rules-databases.ts';
import { runServers } from './servers/run-servers.ts';
import { runStorm, type StormReport } from './storm.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    seed: { type: 'string' },
    /** Calls per second. Default: 10, or 2 with `--servers`. */
    rate: { type: 'string' },
    /**
     * Average seconds between the starts of two faults: 2 means 1 to 3. At 1 and below, several
     * nodes constantly have faults.
     */
    every: { type: 'string', default: '2' },
    /** A folder for the logs of the nodes. Default: no logs are written. */
    logs: { type: 'string' },
    /** Faults of the servers in production instead of the storm. */
    servers: { type: 'boolean', default: false },
    /** The faults of `--servers`, separated by commas. Default: the seed draws them. */
    only: { type: 'string' },
    /** How many outages of PostgreSQL to run instead of the storm. */
    outages: { type: 'string' },
    /** How many fail-overs of each length to run instead of the storm. */
    failovers: { type: 'string' },
    /** How long nothing serves during a fail-over, in seconds, separated by commas. */
    lengths: { type: 'string', default: '5,8,12,15,30,60' },
    /** How many hours pass by the clock of the gateways instead of the storm. */
    hours: { type: 'string' },
    /** How many calls of accounts with calling rules to dial instead of the storm. */
    rules: { type: 'string' },
    /** Further calls per second of the storm, of accounts with calling rules. */
    ruled: { type: 'string', default: '4' },
    /** The databases of `--rules` and `--meter`, separated by commas. */
    databases: { type: 'string', default: 'postgres,pglite' },
    /** How many calls of campaigns to dial and to count twice instead of the storm. */
    meter: { type: 'string' },
    /** How many gateways `--meter` kills. */
    kills: { type: 'string', default: '0' },
    /** The program of a drachtio-server, for the storm and for `--servers`. */
    drachtio: { type: 'string' },
    gateways: { type: 'string', default: '2' },
    /** Records calls instead of the storm. */
    recording: { type: 'boolean', default: false },
    /** How many calls `--recording` places. */
    calls: { type: 'string', default: '100' },
    /** How long to record without faults. */
    'soak-minutes': { type: 'string' },
    /** How many calls to record at the same time in the soak. */
    recorded: { type: 'string', default: '200' },
    build: { type: 'string' },
  },
});
const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(values.seed);
const seconds = Number(values.seconds);
const callsPerSecond = Number(values.rate ?? (values.servers ? 2 : 10));
const everyMs = Number(values.every) * 1_000;
const outages = Number(values.outages ?? 0);
const failovers = Number(values.failovers ?? 0);
const lengths = values.lengths.split(',').map(Number);
const gateways = Number(values.gateways);
const hours = Number(values.hours ?? 0);
const rules = Number(values.rules ?? 0);
const ruled = Number(values.ruled);
const meter = Number(values.meter ?? 0);
const kills = Number(values.kills);
const calls = Number(values.calls);
const soakMinutes = Number(values['soak-minutes'] ?? 0);
const recorded = Number(values.recorded);
const ofRecordings = [calls, soakMinutes, recorded];
const counts = [
  ...ofRecordings,
  meter,
  kills,
  outages,
  failovers,
  gateways,
  hours,
  rules,
  ruled,
  ...lengths,
];
const numbers = [seed, seconds, callsPerSecond, everyMs, ...counts];
if (!numbers.every((value) => Number.isFinite(value) && value >= 0)) {
  throw new Error(
    '--seconds, --seed, --rate, --every, --outages, --failovers, --lengths, --hours, --rules, --ruled, --meter, --kills, --gateways, --calls, --soak-minutes and --recorded must be numbers of 0 or more',
  );
}
const { drachtio } = values;
if (drachtio !== undefined && outages + failovers + hours + rules + meter > 0) {
  throw new Error('--drachtio is only for the storm and for --servers');
}
const say = (line: string): void => void process.stdout.write(`${line}\n`);

/** Creates the database `storm`. Returns false while the server is still starting. */
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

/** Runs the storm. Returns true if every invariant holds. */
async function storm(databaseUrl: string): Promise<boolean> {
  say(`seed ${seed}, ${seconds} s, ${callsPerSecond} calls a second`);
  const report = await runStorm({
    ...{ seed, seconds, callsPerSecond, databaseUrl, drachtio },
    ruledCallsPerSecond: ruled,
    faultEveryMs: { from: everyMs / 2, to: everyMs * 1.5 },
    log: say,
    ...(values.logs !== undefined && { logFolder: values.logs }),
  });
  return conclude(report);
}

/** Runs the faults of the servers. Returns true if every invariant holds. */
async function servers(): Promise<boolean> {
  say(`seed ${seed}, ${seconds} s, ${callsPerSecond} calls a second`);
  const report = await runServers({
    ...{ seed, seconds, callsPerSecond, drachtio, log: say },
    ...(values.only !== undefined && { faults: values.only.split(',') }),
    ...(values.logs !== undefined && { logFolder: values.logs }),
  });
  return conclude(report);
}

/** Runs the rules storm on both databases. Returns true if no forbidden INVITE left. */
async function stormOfRules(): Promise<boolean> {
  let isFine = true;
  // Ctrl-C ends the calls on one database, and reports what they showed.
  const stopping = new AbortController();
  process.once('SIGINT', () => stopping.abort());
  const { signal } = stopping;
  for (const on of ['postgres', 'pglite'] as const) {
    if (!values.databases.split(',').includes(on)) continue;
    say(`seed ${seed}, ${rules} calls on ${on}`);
    isFine = conclude(await runRules({ on, seed, calls: rules, log: say, signal })) && isFine;
  }
  return isFine;
}

/** Counts the calls of campaigns twice. Returns true if both counts agree. */
async function countTwice(databaseUrl: string | undefined): Promise<boolean> {
  say(`seed ${seed}, ${meter} calls, ${callsPerSecond} a second, ${kills} kills`);
  const report = await runMeter({
    ...{ seed, calls: meter, callsPerSecond, kills, databaseUrl, log: say },
    gateways: databaseUrl === undefined ? 1 : gateways,
  });
  return conclude(report);
}

/** Records calls, with faults or for a long time. Returns true if every recording is right. */
async function record(databaseUrl: string): Promise<boolean> {
  const shared = { seed, gateways, databaseUrl, log: say };
  say(`seed ${seed}, ${gateways} gateways`);
  const report =
    soakMinutes > 0
      ? await runRecordingSoak({ ...shared, minutes: soakMinutes, calls: recorded })
      : await runRecordings({ ...shared, calls, seconds });
  return conclude(report);
}

function conclude({ counts, violations }: Pick<StormReport, 'counts' | 'violations'>): boolean {
  say(JSON.stringify(counts, undefined, 2));
  for (const violation of violations) say(`VIOLATED  ${violation}`);
  const count = violations.length;
  say(count === 0 ? 'every invariant holds' : `${count} violations; seed ${seed}`);
  return count === 0;
}

/** Runs the outages. Returns true if no call was hung up. */
async function sufferOutages(postgres: PostgresServer, databaseUrl: string): Promise<boolean> {
  say(`seed ${seed}, ${outages} outages, ${gateways} gateways`);
  const report = await runOutages({
    ...{ seed, outages, gateways, callsEach: 7, postgres, databaseUrl, log: say },
    ...(values.build !== undefined && { build: values.build }),
  });
  say(JSON.stringify(report, undefined, 2));
  return report.hungUp === 0;
}

/** Runs the fail-overs. Returns true if nobody was hung up. */
async function failOver(): Promise<boolean> {
  say(`${failovers} fail-overs of ${values.lengths} s, ${gateways} gateways`);
  const pair = await startPostgresPair();
  try {
    const reports = await runFailovers({
      ...{ pair, lengths, runsEach: failovers, gateways, people: 14, log: say },
      ...(values.build !== undefined && { build: values.build }),
    });
    say(JSON.stringify(reports, undefined, 2));
    return reports.every(({ hungUp }) => hungUp === 0);
  } finally {
    await pair.stop();
  }
}

/** Lets days pass. Returns true if nothing was lost, repeated or kept for too long. */
async function letDaysPass(databaseUrl: string): Promise<boolean> {
  say(`${hours} h in ${seconds} s`);
  const reports = await runDays({ hours, seconds, databaseUrl, log: say });
  say(JSON.stringify(reports, undefined, 2));
  return reports.every(({ violations }) => violations.length === 0);
}

/** Runs the storm, the outages or the days on a single server. Returns true if nothing is wrong. */
async function onOneServer(): Promise<boolean> {
  const postgres = await startPostgres();
  try {
    await eventually(() => createDatabase(postgres.url), 'PostgreSQL accepts statements');
    const databaseUrl = postgres.url.replace('/postgres?', '/storm?');
    if (values.recording) return await record(databaseUrl);
    if (meter > 0) return await countTwice(databaseUrl);
    if (hours > 0) return await letDaysPass(databaseUrl);
    return outages > 0 ? await sufferOutages(postgres, databaseUrl) : await storm(databaseUrl);
  } finally {
    await postgres.stop();
  }
}

async function run(): Promise<boolean> {
  if (rules > 0) return await stormOfRules();
  if (meter > 0) {
    const databases = values.databases.split(',');
    const isFine = databases.includes('postgres') ? await onOneServer() : true;
    return databases.includes('pglite') ? (await countTwice(undefined)) && isFine : isFine;
  }
  if (values.servers) return await servers();
  return failovers > 0 ? await failOver() : await onOneServer();
}

const isFine = await run();
process.exitCode = isFine ? 0 : 1;
