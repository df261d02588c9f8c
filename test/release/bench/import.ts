// An import of suppressed numbers, and an export of records, over HTTP, through a real gateway
// process: seconds, CPU time, and by how much the gateway's memory grows meanwhile.

import { createHash } from 'node:crypto';
import { Agent, request } from 'node:http';
import { Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { Pool } from 'pg';
import { silentLogger } from '../../../src/lib/logger.ts';
import { openDatabase } from '../../../src/store/database.ts';
import { createAppIn } from '../../support/apps.ts';
import { eventually } from '../../support/eventually.ts';
import { type GatewayProcess, makeDataDir, startGateway } from '../../support/gateway-process.ts';
import { startPostgres } from '../../support/postgres-server.ts';
import { optionsOf } from './options.ts';
import { cpuTimes, processTree, residentBytes } from './process-usage.ts';
import { addRecords } from './rules-fill.ts';

const kinds = ['postgres', 'pglite'] as const;
type Kind = (typeof kinds)[number];

const goals = {
  /** For a million numbers. */
  importS: 60,
  importMib: 64,
  exportMib: 32,
};
const mib = 2 ** 20;
const secretsKey = '07'.repeat(32);

export async function benchImport(args: readonly string[]): Promise<void> {
  const options = optionsOf(args, { on: 'both', numbers: 1_000_000, records: 1_000_000 });
  for (const kind of kinds) {
    if (options.on === 'both' || options.on === kind) await benchOn(kind, options);
  }
}

async function benchOn(
  kind: Kind,
  { numbers, records }: { readonly numbers: number; readonly records: number },
): Promise<void> {
  await using server = await serverOf(kind);
  const gateway = await server.start();
  console.log(`\n${kind}, through HTTP`);
  row('', 'seconds', 'CPU s', 'database', 'MiB more', 'at most');
  for (const format of ['ndjson', 'csv'] as const) {
    const name = `import of ${numbers} numbers, ${format}`;
    const limitS = (goals.importS * numbers) / 1_000_000;
    const { seconds } = await measured({ gateway, server, name, limitMib: goals.importMib }, () =>
      sendImport(gateway, format, numbers),
    );
    if (seconds > limitS) misses(`takes more than ${limitS} s`);
  }
  if (records > 0) {
    const filled = await server.fill(gateway, records);
    for (const format of ['ndjson', 'csv'] as const) {
      const name = `export of ${records} records, ${format}`;
      await measured({ gateway: filled, server, name, limitMib: goals.exportMib }, () =>
        readExport(filled, format, records),
      );
    }
  }
}

// ── The gateway ──────────────────────────────────────────────────────────────────────────────────

type Server = AsyncDisposable & {
  /** Undefined if the database runs in the gateway's process. */
  readonly databasePid: number | undefined;
  start(): Promise<GatewayProcess>;
  /** Adds records to the app's account. Returns the gateway, which may be another process. */
  fill(gateway: GatewayProcess, records: number): Promise<GatewayProcess>;
};

async function serverOf(kind: Kind): Promise<Server> {
  const dataDir = await makeDataDir();
  const postgres =
    kind === 'postgres' ? await startPostgres({ settings: ['max_wal_size=4GB'] }) : undefined;
  const app = postgres === undefined ? undefined : await createAppIn(postgres.url, secretsKey);
  const running: GatewayProcess[] = [];
  const start = async (): Promise<GatewayProcess> => {
    const database =
      postgres === undefined ? {} : { DATABASE_URL: postgres.url, SECRETS_KEY: secretsKey };
    const gateway = await startGateway(dataDir.path, database, app);
    running.push(gateway);
    await eventually(
      async () => (await gateway.dialer.request('GET', '/ready')).status === 200,
      'the gateway is ready',
    );
    return gateway;
  };
  const fillWith = async (pool: Pool, appId: string, records: number): Promise<void> => {
    const { rows } = await pool.query<{ account_id: string }>(
      'select account_id from apps where app_id = $1',
      [appId],
    );
    await addRecords(pool, rows[0]?.account_id ?? '', 1, records);
  };
  return {
    start,
    databasePid: postgres?.pid,
    async fill(gateway, records) {
      const { appId } = gateway.dialer.app;
      if (postgres !== undefined) {
        const pool = new Pool({ connectionString: postgres.url, max: 1 });
        await fillWith(pool, appId, records);
        await pool.end();
        return gateway;
      }
      // Only one process can open the embedded database.
      await gateway.terminate();
      const database = await openDatabase({ dataDir: dataDir.path, logger: silentLogger });
      await fillWith(database.pool, appId, records);
      await database.close();
      return await start();
    },
    async [Symbol.asyncDispose]() {
      for (const gateway of running) await gateway.terminate();
      await postgres?.stop();
      await dataDir.remove();
    },
  };
}

// ── Requests ─────────────────────────────────────────────────────────────────────────────────────

/** As many lines as a chunk of a file holds. */
const linesPerChunk = 1_000;

function* lines(format: 'ndjson' | 'csv', numbers: number): Generator<string> {
  if (format === 'csv') yield 'number,reason,source,until\n';
  // The second format imports numbers that are new too.
  const area = format === 'csv' ? '+1808' : '+1602';
  for (let first = 0; first < numbers; first += linesPerChunk) {
    let chunk = '';
    for (let index = first; index < Math.min(first + linesPerChunk, numbers); index += 1) {
      // Lists are rarely sorted. The factor has no divisor in common with the powers of ten.
      const number = area + String((index * 7_654_321) % 10_000_000).padStart(7, '0');
      chunk +=
        format === 'csv'
          ? `${number},do-not-call,state list,\n`
          : `{"number":"${number}","reason":"do-not-call","source":"state list"}\n`;
    }
    yield chunk;
  }
}

async function sendImport(
  gateway: GatewayProcess,
  format: 'ndjson' | 'csv',
  numbers: number,
): Promise<void> {
  const type = format === 'csv' ? 'text/csv' : 'application/x-ndjson';
  const { text } = await ask(gateway, 'POST', '/api/public/suppressions', {
    headers: { 'content-type': type },
    body: Readable.from(lines(format, numbers)),
  });
  const { accepted, wrongTotal } = JSON.parse(text()) as Record<string, number>;
  if (accepted !== numbers || wrongTotal !== 0) throw new Error(`the import answered ${text()}`);
}

async function readExport(
  gateway: GatewayProcess,
  format: 'ndjson' | 'csv',
  records: number,
): Promise<void> {
  const { sha256, tail } = await ask(gateway, 'GET', `/api/public/records?format=${format}`);
  const found = /records"?[:=](\d+).*sha256"?[:=]"?([0-9a-f]{64})/.exec(tail());
  if (Number(found?.[1]) !== records || found?.[2] !== sha256()) {
    throw new Error(`the export ended with ${tail()}`);
  }
}

type Sent = {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Readable;
};

/** Sends a request. It keeps, of the answer, only the end and a hash of the lines before it. */
async function ask(
  { runtime, dialer }: GatewayProcess,
  method: 'GET' | 'POST',
  path: string,
  { headers = {}, body }: Sent = {},
) {
  const agent = new Agent();
  const hash = createHash('sha256');
  let last = Buffer.alloc(0);
  await new Promise<void>((resolve, reject) => {
    const sent = request(
      new URL(path, runtime.httpUrl),
      { method, agent, headers: { auth: dialer.token, ...headers } },
      (response) => {
        response.on('error', reject).on('end', resolve);
        if (response.statusCode !== 200) reject(new Error(`HTTP ${response.statusCode}`));
        response.on('data', (chunk: Buffer) => {
          const read = Buffer.concat([last, chunk]);
          // The last line, and its end, are shorter than this.
          const known = Math.max(0, read.length - 2_048);
          hash.update(read.subarray(0, known));
          last = read.subarray(known);
        });
      },
    );
    sent.on('error', reject);
    if (body === undefined) sent.end();
    else body.on('error', reject).pipe(sent);
  });
  agent.destroy();
  const lastLine = last.subarray(0, -1).lastIndexOf('\n') + 1;
  return {
    text: () => last.toString(),
    tail: () => last.subarray(lastLine).toString(),
    sha256: () => hash.update(last.subarray(0, lastLine)).digest('hex'),
  };
}

// ── Figures ──────────────────────────────────────────────────────────────────────────────────────

/** The gateway settles after its start, or after earlier work. */
const settleMs = 3_000;

type Measurement = {
  readonly gateway: GatewayProcess;
  readonly server: Pick<Server, 'databasePid'>;
  readonly name: string;
  readonly limitMib: number;
};

async function measured(
  { gateway, server: { databasePid }, name, limitMib }: Measurement,
  work: () => Promise<void>,
): Promise<{ readonly seconds: number }> {
  const { pid } = gateway.runtime;
  const cpu = async () => ({
    gateway: await treeCpu(pid),
    database: databasePid === undefined ? 0 : await treeCpu(databasePid),
  });
  await pause(settleMs);
  const [before, cpuBefore, at] = [await residentBytes(pid), await cpu(), performance.now()];
  let most = before;
  const sampling = setInterval(() => {
    residentBytes(pid).then(
      (bytes) => {
        most = Math.max(most, bytes);
      },
      () => undefined,
    );
  }, 100);
  try {
    await work();
  } finally {
    clearInterval(sampling);
  }
  const seconds = (performance.now() - at) / 1_000;
  const used = await cpu();
  const more = (most - before) / mib;
  row(
    name,
    seconds.toFixed(1),
    (used.gateway - cpuBefore.gateway).toFixed(1),
    databasePid === undefined ? 'included' : (used.database - cpuBefore.database).toFixed(1),
    ...[more.toFixed(0), `${limitMib} MiB`],
  );
  if (more > limitMib) misses(`needs more than ${limitMib} MiB`);
  return { seconds };
}

async function treeCpu(pid: number): Promise<number> {
  const used = await Promise.all((await processTree(pid)).map(cpuTimes));
  return used.reduce((sum, { own, endedChildren }) => sum + own + endedChildren, 0);
}

function misses(what: string): void {
  console.log(`    misses the goal: ${what}`);
  process.exitCode = 1;
}

function row(what: string, ...values: readonly string[]): void {
  console.log(`  ${what.padEnd(38)}${values.map((value) => value.padStart(11)).join('')}`);
}
