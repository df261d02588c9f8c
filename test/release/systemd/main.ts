// `npm run test:systemd` runs sip-config/offhook.service under a real systemd, with a real
// PostgreSQL and nats-server. It prints each check that holds, and exits with 1 at the first that
// fails. It needs Linux, systemd and root, because only root may boot systemd in namespaces of its
// own.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createAppIn } from '../../support/apps.ts';
import { startCluster } from '../../support/cluster.ts';
import { createDialer, type DevApp, type Dialer } from '../../support/dialer-client.ts';
import { eventually } from '../../support/eventually.ts';
import { numberFor } from '../../support/far-end.ts';
import { freeUdpPort } from '../../support/free-port.ts';
import { startPostgres } from '../../support/postgres-server.ts';
import { processesUnder } from '../../support/process-tree.ts';
import { layDatabaseWire, through } from '../../support/wire.ts';
import { type BootedSystemd, bootSystemd } from './booted-systemd.ts';

const runProgram = promisify(execFile);
const unitFile = fileURLToPath(new URL('../../../sip-config/offhook.service', import.meta.url));
/** systemd-analyze's scale goes from 0 (closed) to 10 (open). It calls 2 and less "OK". */
const maxExposure = 2;
const startTimeoutMs = 30_000;

if (process.getuid?.() !== 0 || !existsSync('/lib/systemd/systemd')) {
  process.stderr.write('test:systemd needs root, and the Debian package systemd\n');
  process.exit(1);
}

await unitIsHardened();
const postgres = await startPostgres();
const settings = await mkdtemp(join(tmpdir(), 'offhook-systemd-'));
try {
  await run();
} catch (error) {
  say(await readFile(join(settings, 'log'), 'utf8').catch(() => 'the gateway has no log'));
  throw error;
} finally {
  await rm(settings, { recursive: true, force: true });
  await postgres.stop();
}

async function unitIsHardened(): Promise<void> {
  await runProgram('systemd-analyze', ['verify', unitFile]);
  const { stdout } = await runProgram('systemd-analyze', ['security', '--offline=true', unitFile]);
  const exposure = Number(/exposure level for offhook\.service: ([\d.]+)/.exec(stdout)?.[1]);
  assert.ok(exposure <= maxExposure, stdout);
  say(`systemd-analyze accepts the unit, with an exposure of ${exposure}`);
}

async function run(): Promise<void> {
  // The unit has a /tmp of its own, so it reaches the database's socket only over TCP.
  const wire = await layDatabaseWire(postgres.url);
  let app: (DevApp & { secretsKey: string }) | undefined;
  const createApp = async (url: string, secretsKey: string): Promise<DevApp> => {
    const created = await createAppIn(url, secretsKey);
    app = { ...created, secretsKey };
    return created;
  };
  try {
    await using cluster = await startCluster({ databaseUrl: postgres.url, createApp });
    assert.ok(app);
    const httpPort = await freeUdpPort();
    await writeSettings({
      httpPort,
      phonesPort: cluster.farEnd.port,
      secrets: {
        'database-url': through(postgres.url, wire),
        'nats-url': cluster.nats.url,
        'drachtio-url': cluster.engine.url,
        'secrets-key': app.secretsKey,
      },
    });
    await using systemd = await bootSystemd(settings);
    await systemd.systemctl('enable', '--now', 'offhook');
    await isReady(httpPort);
    say('the unit starts, and the gateway is ready');
    await processIsConfined(systemd, app.secretsKey);
    const dialer = await createDialer(`http://127.0.0.1:${httpPort}`, app);
    await reloads(systemd, dialer);
    await restarts(systemd, httpPort);
    await drains(systemd, dialer, cluster);
  } finally {
    await wire.close();
  }
}

async function writeSettings(given: {
  readonly httpPort: number;
  readonly phonesPort: number;
  readonly secrets: Readonly<Record<string, string>>;
}): Promise<void> {
  const variables = {
    HTTP_PORT: given.httpPort,
    TRUNKS_FILE: '/etc/offhook/trunks.yaml',
    NOTIFY_ALLOWED_NETWORKS: '127.0.0.0/8',
  };
  const lines = Object.entries(variables).map(([name, value]) => `${name}=${value}\n`);
  await writeFile(join(settings, 'offhook.env'), lines.join(''));
  await writeFile(
    join(settings, 'trunks.yaml'),
    `trunks:\n  - name: phones\n    default: true\n    numberFormat: digits\n    gateways: [{ host: 127.0.0.1, port: ${given.phonesPort} }]\n`,
  );
  // mkdtemp creates the folder for root alone, but the unit's user reads the trunks.
  await runProgram('chmod', ['0755', settings]);
  const folder = join(settings, 'secrets');
  await mkdir(folder, { mode: 0o700 });
  for (const [name, value] of Object.entries(given.secrets)) {
    await writeFile(join(folder, name), `${value}\n`, { mode: 0o600 });
  }
}

async function isReady(httpPort: number): Promise<void> {
  const check = async () =>
    (await fetch(`http://127.0.0.1:${httpPort}/ready`).catch(() => undefined))?.status === 200;
  await eventually(check, 'the gateway is ready', startTimeoutMs);
}

/** Checks what the kernel says about the gateway's process, which sees its own ids only. */
async function processIsConfined(systemd: BootedSystemd, secretsKey: string): Promise<void> {
  const pid = gatewayPid();
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const statusOf = (name: string) => new RegExp(`^${name}:\\s+(\\S+)`, 'm').exec(status)?.[1];
  assert.notEqual(statusOf('Uid'), '0');
  assert.equal(statusOf('CapBnd'), '0000000000000000');
  assert.equal(statusOf('NoNewPrivs'), '1');
  assert.equal(statusOf('Seccomp'), '2');
  const environment = readFileSync(`/proc/${pid}/environ`, 'utf8');
  assert.ok(environment.includes('SECRETS_KEY_FILE='));
  assert.ok(!environment.includes(secretsKey));
  assert.equal((await systemd.show('offhook'))['NRestarts'], '0');
  say(
    'its process has a user of its own, no capability, a filter, and no secret in its environment',
  );
}

function gatewayPid(): number {
  const found = processesUnder(process.pid).find(({ pid }) =>
    /^node\0.*dist\/main\.js/.test(readFileSync(`/proc/${pid}/cmdline`, 'utf8')),
  );
  assert.ok(found, 'the gateway has a process');
  return found.pid;
}

async function reloads(systemd: BootedSystemd, dialer: Dialer): Promise<void> {
  const target = `tel:+${numberFor('busy', 0, 1)}`;
  const dial = async () => (await dialer.post({ target, trunk: 'second' })).status;
  assert.equal(await dial(), 400);
  appendFileSync(
    join(settings, 'trunks.yaml'),
    `  - name: second\n    gateways: [{ host: 127.0.0.1, port: 5099 }]\n`,
  );
  await systemd.systemctl('reload', 'offhook');
  await eventually(async () => (await dial()) === 200, 'the new trunk is known');
  say('`systemctl reload` makes it read trunks.yaml again');
}

async function restarts(systemd: BootedSystemd, httpPort: number): Promise<void> {
  process.kill(gatewayPid(), 'SIGKILL');
  const isRestarted = async () => (await systemd.show('offhook'))['NRestarts'] === '1';
  await eventually(isRestarted, 'systemd has restarted the gateway', startTimeoutMs);
  await isReady(httpPort);
  say('systemd restarts it after its process was killed');
}

async function drains(
  systemd: BootedSystemd,
  dialer: Dialer,
  { farEnd, receiver }: Awaited<ReturnType<typeof startCluster>>,
): Promise<void> {
  // The phone hangs up 4 s after it has answered.
  const number = numberFor('talk', 40, 2);
  await dialer.dial({ target: `tel:+${number}`, notifyurl: receiver.url });
  const isUp = () =>
    farEnd.calls.some((call) => call.number === number && call.acknowledgedAt !== undefined);
  await eventually(isUp, 'somebody talks');
  await systemd.systemctl('stop', 'offhook');
  const call = farEnd.calls.find((one) => one.number === number);
  assert.ok(call?.endedAt !== undefined && call.byes.length === 0, 'the phone hung up itself');
  assert.ok(receiver.accepted().some(({ body }) => body.status === 'completed'));
  const shown = await systemd.show('offhook');
  assert.deepEqual([shown['Result'], shown['ExecMainStatus']], ['success', '0']);
  say('`systemctl stop` waits for the call, and the process exits with 0');
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
