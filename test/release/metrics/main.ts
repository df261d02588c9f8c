// `npm run test:metrics` tests the configuration, the rules and the dashboard of .docker on a real
// Prometheus that scrapes three real gateways. The third one uses a PostgreSQL and a NATS that go
// away. It prints each check that holds, and exits with 1 at
// the first that fails. It does not run Grafana, because Debian has no package of it.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DiscardPolicy } from '@nats-io/jetstream';
import { createAppIn } from '../../support/apps.ts';
import { eventually } from '../../support/eventually.ts';
import { freeUdpPort } from '../../support/free-port.ts';
import { type GatewayProcess, makeDataDir, startGateway } from '../../support/gateway-process.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { type PostgresServer, startPostgres } from '../../support/postgres-server.ts';
import { startReceiver } from '../../support/receiver.ts';
import { ScriptedBot } from '../../support/streams/scripted-bot.ts';
import { readQueries } from './panels.ts';
import { checkFiles, type Prometheus, scrapeEveryS, startPrometheus } from './prometheus.ts';

/**
 * The time-out of each check. Scrapes and evaluations happen every second, but the machine may be
 * busy, and some alerts only fire after a minute.
 */
const withinMs = 100_000;
/**
 * A gateway with a trunk no longer counts as a laptop. Loopback must therefore be allowed and the
 * sandbox switched on.
 */
const onLoopback = { NOTIFY_ALLOWED_NETWORKS: '127.0.0.0/8', SANDBOX: 'on' };
/** Panels without data: no receiver fails for five minutes in this test. */
const emptyPanels = ['Receivers that keep failing, by app'];

/** The actions that stop what was started, in the order of the starts. */
const cleanups: (() => unknown)[] = [];

await checkFiles();
say('promtool accepts the rules; each alert fires when it should and not before');
try {
  await run();
} finally {
  for (const cleanup of cleanups.reverse()) await cleanup();
}

async function run(): Promise<void> {
  const [one, two] = [await startWithTrunks(), await startWithTrunks()];
  const three = await startOnServers();
  const targets = [one, two, three.gateway].map(({ runtime }) => new URL(runtime.httpUrl).host);
  const prometheus = await startPrometheus(targets);
  cleanups.push(() => prometheus[Symbol.asyncDispose]());
  await targetsAreUp(prometheus, targets);
  await makeTraffic(one);
  await alertsFire(prometheus);
  await panelsHaveSeries(prometheus);
  // Ends the gateway with its signal, so that its nats-server ends too.
  await two.terminate();
  await firing(prometheus, 'OffhookDown', `${targets[1]} does not answer`);
  say('an alert fires for a gateway that is gone');
  await outagesFire(prometheus, three);
}

type OnServers = {
  readonly gateway: GatewayProcess;
  readonly postgres: PostgresServer;
  readonly nats: TestNats;
};

/** Starts a gateway with a PostgreSQL and a NATS of its own. */
async function startOnServers(): Promise<OnServers> {
  const dataDir = await makeDataDir();
  cleanups.push(() => dataDir.remove());
  const postgres = await startPostgres();
  cleanups.push(() => postgres.stop());
  const nats = await startTestNats();
  cleanups.push(() => nats.stop());
  const secretsKey = randomBytes(32).toString('hex');
  const gateway = await startGateway(
    dataDir.path,
    {
      ...onLoopback,
      ...{ DATABASE_URL: postgres.url, SECRETS_KEY: secretsKey, NATS_URL: nats.url },
      NATS_MAX_BYTES: '1000000000',
    },
    await createAppIn(postgres.url, secretsKey),
  );
  cleanups.push(() => gateway.terminate());
  return { gateway, postgres, nats };
}

/** Makes NATS full, stops it, and then stops PostgreSQL. */
async function outagesFire(from: Prometheus, { gateway, postgres, nats }: OnServers) {
  const { manager } = await nats.connect('offhook');
  const { state } = await manager.streams.info('offhook_calls');
  const full = { max_msgs: Math.max(1, state.messages), discard: DiscardPolicy.New };
  await manager.streams.update('offhook_calls', full);
  // The stream may have been empty, so the first call may fill it.
  for (let calls = 0; calls < 2; calls += 1)
    await gateway.dialer.dial({ target: 'tel:+12025550130', trunk: 'sandbox' });
  const { host } = new URL(gateway.runtime.httpUrl);
  await firing(from, 'OffhookNatsFull', `NATS stores no events of ${host}`);
  await firing(from, 'OffhookEventsWaiting', `events of ${host} have been waiting`);
  await nats.server.stop();
  await firing(from, 'OffhookNatsAway', `${host} is not connected to NATS`);
  say('alerts fire for a NATS that is full, for the events that wait, and for a NATS that is away');
  await postgres.stop();
  await firing(from, 'OffhookDatabaseAway', `${host} cannot use the database`);
  say('an alert fires for a PostgreSQL that is away');
}

async function startWithTrunks(): Promise<GatewayProcess> {
  const dataDir = await makeDataDir();
  cleanups.push(() => dataDir.remove());
  const trunks = join(dataDir.path, 'trunks.yaml');
  // No server listens on this port.
  const gateways = `gateways: [{ host: 127.0.0.1, port: ${await freeUdpPort()} }]`;
  const health = 'health: { intervalS: 1, failThreshold: 1 }';
  await writeFile(trunks, `trunks:\n  - name: away\n    ${gateways}\n    ${health}\n`);
  const gateway = await startGateway(dataDir.path, { ...onLoopback, TRUNKS_FILE: trunks });
  cleanups.push(() => gateway.terminate());
  return gateway;
}

async function targetsAreUp(from: Prometheus, targets: readonly string[]): Promise<void> {
  const all = targets.map((target) => [target, 'up'] as const);
  const areUp = async () => {
    const found = await from.targets();
    return all.every(([target, health]) => found.get(target) === health);
  };
  await eventually(
    areUp,
    `all gateways are scraped: ${JSON.stringify([...(await from.targets())])}`,
    withinMs,
  );
  const isEvaluated = async () => (await from.rules()).every(({ health }) => health === 'ok');
  await eventually(isEvaluated, 'every rule is evaluated', withinMs);
  say(`${targets.length} gateways are up, ${(await from.rules()).length} rules are evaluated`);
}

/**
 * Creates the data that the panels show: outcomes, faults, a bot, a receiver that refuses and a
 * receiver that is gone.
 */
async function makeTraffic(gateway: GatewayProcess): Promise<void> {
  const receiver = await startReceiver();
  cleanups.push(() => receiver.close());
  const bot = await ScriptedBot.start();
  cleanups.push(() => bot[Symbol.asyncDispose]());
  const refused = new Set<string>();
  receiver.answerWith(({ callId, status, eventId }) => {
    if (callId === gone) return 410;
    if (status !== 'Failed' || refused.has(eventId)) return 200;
    refused.add(eventId);
    return 500;
  });
  const dial = async (number: string, more: object = {}) => {
    const target = `tel:+120255501${number}`;
    const body = { target, trunk: 'sandbox', notifyurl: receiver.url, ...more };
    return (await gateway.dialer.dial(body)).callId;
  };
  let gone = '';
  // The sandbox numbers: 30 is busy, 33 is a failing carrier, 34 is an unassigned number.
  for (const number of ['30', '33', '33', '34']) await dial(number);
  gone = await dial('30');
  await dial('02', { machineDetection: 'detect', stream: { url: bot.url } });
  const connection = await bot.connection();
  connection.say(new Uint8Array(8_000).fill(0x20));
  await dial('01', { machineDetection: 'detect' });
}

async function alertsFire(from: Prometheus): Promise<void> {
  await firing(from, 'OffhookTrunkDown', 'no gateway of trunk away answers OPTIONS');
  await firing(from, 'OffhookCarrierFaults', 'more than 30 % of the calls fail');
  await firing(
    from,
    'OffhookDeliveriesFailing',
    'more than 20 % of the notification attempts fail',
  );
  await firing(from, 'OffhookDeadLetters', 'notifications were given up');
  say('the alerts for a trunk, the carrier, deliveries and a dead letter fire');
}

async function firing(from: Prometheus, name: string, summary: string): Promise<void> {
  const isFiring = async () => {
    const alerts = await from.firing();
    return alerts.some(
      ({ labels, annotations }) =>
        labels['alertname'] === name && annotations['summary']?.startsWith(summary),
    );
  };
  await eventually(isFiring, `${name} fires: ${summary}`, withinMs);
}

async function panelsHaveSeries(from: Prometheus): Promise<void> {
  const queries = await readQueries(from, scrapeEveryS);
  for (const { panel, legend, expr } of queries) {
    const labels = [...legend.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = '']) => label);
    const expected = emptyPanels.includes(panel) ? 0 : 1;
    const isShown = async () => {
      const series = await from.query(expr);
      const isNamed = series.every(({ metric }) => labels.every((label) => label in metric));
      return isNamed && series.length >= expected;
    };
    await eventually(isShown, `${panel} shows “${legend}”: ${expr}`, withinMs);
  }
  assert.ok(queries.length > 20);
  say(`${queries.length} queries of the dashboard have results with the labels of their legends`);
}

function say(what: string): void {
  console.log(`ok  ${what}`);
}
