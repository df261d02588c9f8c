// Performs the steps of an operator, with the commands of sip-config/README.md, and checks the
// result of each.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';
import { version } from '../../../src/version.ts';
import { createDialer, type DevApp, type Dialer } from '../../support/dialer-client.ts';
import { eventually } from '../../support/eventually.ts';
import { type FarEnd, numberFor } from '../../support/far-end.ts';
import {
  glance,
  type Notification,
  type Receiver,
  signatureIsRight,
} from '../../support/receiver.ts';
import { type Checkout, commandOfProduction } from './checkout.ts';
import { checkContainers, checkImage } from './containers.ts';
import { buildDrachtio } from './images.ts';
import { run, say } from './run.ts';

type Setting = {
  readonly cache: string;
  readonly checkout: Checkout;
  readonly farEnd: FarEnd;
  readonly receiver: Receiver;
};
type World = Setting & { readonly dialer: Dialer; readonly app: DevApp };

const api = 'http://127.0.0.1:3000';
const gateways = ['gateway-1', 'gateway-2'] as const;
/** The time for containers to restart, for leases to expire, and for the work that follows. */
const patienceMs = 90_000;
/**
 * The longest talk that a number can encode. It is longer than the recreation of a container takes.
 */
const longTalkTenths = 99;

export async function scenario(setting: Setting): Promise<void> {
  const world = await start(setting);
  await checkContainers(world.checkout);
  await checkImage(world.checkout);
  await places(world);
  await recreatesNothing(world);
  for (const gateway of gateways) await upgrades(world, gateway);
  await survivesKill(world);
  await reloads(world);
  await editsProxy(world);
  await backsUpAndRestores(world);
  await restoresToMoment(world);
  await restoresNats(world);
  await records(world);
  await hasNoGateway(world);
}

async function start(setting: Setting): Promise<World> {
  const { checkout, farEnd, cache } = setting;
  const [configure = '', launch = ''] = split(
    commandOfProduction('(umask 077 && cat > .env'),
    'docker compose up',
  );
  await checkout.sh(configure.replace('203.0.113.4', '127.0.0.1'));
  await checkout.append('.env', 'NOTIFY_ALLOWED_NETWORKS=127.0.0.0/8\n');
  await checkout.edit('sip-config/trunks.yaml', () => trunks(farEnd.port));
  await checkout.sh('chmod -R a+rX sip-config');
  await fitToMachine(checkout);
  say('building the image');
  await checkout.compose('build', 'gateway-1');
  await buildDrachtio(cache, `offhook:${version}`);
  say('starting');
  const [up = '', create = '', nodes = ''] = launch.trim().split('\n');
  await checkout.sh(up);
  say('all healthy');
  const app = JSON.parse(
    await checkout.sh(create.replace('--bots my-bot', '--bots "*"')),
  ) as DevApp;
  const listed = await checkout.sh(nodes);
  for (const gateway of gateways) assert.match(listed, new RegExp(`^${gateway} +up `, 'm'));
  return { ...setting, app, dialer: await createDialer(api, app) };
}

const split = (text: string, at: string): readonly string[] => {
  const index = text.indexOf(at);
  return [text.slice(0, index), text.slice(index)];
};

const trunks = (port: number, more = ''): string =>
  [
    'trunks:',
    '  - name: phones',
    '    default: true',
    '    numberFormat: digits',
    `    gateways: [{ host: 127.0.0.1, port: ${port} }]`,
    more,
    '',
  ].join('\n');

/**
 * Writes an override file, which Compose reads in addition to docker-compose.yml. It disables the
 * network while the image is built, and limits the open files to what the machine allows.
 */
async function fitToMachine(checkout: Checkout): Promise<void> {
  const most = Number((await run('sh', ['-c', 'ulimit -Hn'])).trim().replace('unlimited', '1e9'));
  const limited = most < 65_536 ? ['proxy', ...gateways, 'drachtio'] : [];
  await checkout.write(
    'docker-compose.override.yml',
    [
      'x-build: &build { build: { network: none } }',
      'services:',
      ...(limited.includes('gateway-1') ? [] : ['  gateway-1: *build']),
      ...limited.map((name) => {
        const build = name === 'gateway-1' ? '<<: *build, ' : '';
        return `  ${name}: { ${build}ulimits: { nofile: ${Math.min(most, 16_384)} } }`;
      }),
      '',
    ].join('\n'),
  );
}

async function places({ dialer, receiver, app }: World): Promise<void> {
  const target = `tel:+${numberFor('talk', 5, 1)}`;
  const { callId } = await dialer.dial({ target, notifyurl: receiver.url });
  assert.deepEqual(glance(await receiver.untilEnded(callId)), ['Answered', 'completed']);
  const own = receiver.received.filter(({ body }) => body.callId === callId);
  for (const received of own) assert.ok(signatureIsRight(received, app.webhookSecret));
  for (const path of ['/metrics', '/live', '//ready']) {
    const response = await fetch(`${api}${path}`);
    assert.equal(response.status, 404, path);
    assert.equal(((await response.json()) as { status: number }).status, 404);
  }
  assert.equal((await fetch(`${api}/ready`)).status, 200);
  say('a call through the proxy, with signed notifications');
}

/** A recording is stored where both gateways read it, outlives them, and can be restored. */
async function records({ checkout, dialer, receiver }: World): Promise<void> {
  const target = `tel:+${numberFor('talk', 20, 900)}`;
  const { callId } = await dialer.dial({ target, notifyurl: receiver.url, recording: {} });
  await receiver.untilEnded(callId);
  const reader = JSON.parse(
    await checkout.sh(
      'docker compose exec -T gateway-1 offhook apps create --name reader --account acme --bots "*" --scopes Recordings',
    ),
  ) as DevApp;
  const { token } = await createDialer(api, reader);
  const path = `/api/public/bot/${dialer.botId}/calls/${callId}/recording`;
  let statuses: readonly number[] = [];
  const isServed = async (): Promise<boolean> => {
    const responses = await Promise.all(
      [3001, 3002].map((port) =>
        fetch(`http://127.0.0.1:${port}${path}`, { headers: { auth: token } }),
      ),
    );
    statuses = responses.map(({ status }) => status);
    return responses.every(({ ok }) => ok);
  };
  const are = () => `both gateways serve the recording: ${statuses.join(', ')}`;
  await eventually(isServed, are, patienceMs);
  await checkout.sh(commandOfProduction('(umask 077 && docker compose exec -T gateway-1 tar'));
  await checkout.sh('docker compose exec -T gateway-2 rm -r /recordings/store');
  assert.equal(await isServed(), false);
  await checkout.compose('up', '-d', '--wait', '--force-recreate', ...gateways);
  await checkout.sh(commandOfProduction('docker compose exec -T gateway-1 tar'));
  await eventually(isServed, are, patienceMs);
  say('a recording is served by both gateways, and restored from its copy');
}

async function containersOf(checkout: Checkout): Promise<string> {
  return await checkout.compose('ps', '-aq', '--no-trunc');
}

async function recreatesNothing({ checkout }: World): Promise<void> {
  const before = await containersOf(checkout);
  await checkout.sh('docker compose up -d --wait');
  assert.equal(await containersOf(checkout), before);
  say('up -d without changes recreates no container');
}

/** Upgrades a gateway while calls are up on both and a dialer sends ten requests a second. */
async function upgrades(world: World, gateway: string): Promise<void> {
  const { checkout, dialer, receiver, farEnd } = world;
  const other = gateway === 'gateway-1' ? 'gateway-2' : 'gateway-1';
  const otherBefore = await idOf(checkout, other);
  // Changes the image for the first gateway. The second one uses the same new image.
  if (gateway === 'gateway-1') await checkout.append('LICENSE', '\n');
  const imageBefore = await imageOf(checkout, gateway);
  const before = farEnd.up;
  const talks = await Promise.all(
    [1, 2, 3, 4].map((index) =>
      dialer.dial({
        target: `tel:+${numberFor('talk', longTalkTenths, farEnd.calls.length * 10 + index)}`,
        notifyurl: receiver.url,
      }),
    ),
  );
  await eventually(() => farEnd.up === before + talks.length, 'the calls are up');
  const logs = await Promise.all(gateways.map((each) => followLog(checkout, each)));
  const stopped = new AbortController();
  const asked = askOften(world, stopped.signal);
  const command = commandOfProduction('docker compose up -d --no-deps --wait gateway-1');
  await checkout.sh(command.replace('gateway-1', gateway));
  stopped.abort();
  const answers = await asked;
  const refused = answers.filter((answer) => answer !== '200');
  const reasons = refused.map((answer) => `${answer}\n${reasonIn(logs, answer)}`);
  for (const log of logs) log.stop();
  assert.deepEqual(reasons, [], `${refused.length} of ${answers.length} requests were refused`);
  assert.equal(await idOf(checkout, other), otherBefore, 'the other gateway is left alone');
  for (const { callId } of talks) {
    const last = (await receiver.untilEnded(callId, patienceMs)).at(-1);
    assert.equal(last?.reasonCode, 'Caller-disconnected', 'a call is not cut');
  }
  assert.equal(await stateOf(checkout, gateway), 'running healthy');
  assert.notEqual(await imageOf(checkout, gateway), imageBefore);
  const meanwhile = `${answers.length} requests, none refused`;
  say(`${gateway} upgraded: ${talks.length} calls finished, ${meanwhile}`);
}

type Log = { lines(): readonly string[]; stop(): void };

/** Collects the new log lines of a container, because its log is deleted when it is recreated. */
async function followLog(checkout: Checkout, service: string): Promise<Log> {
  const id = await idOf(checkout, service);
  const child = spawn('docker', ['logs', '-f', '--tail', '0', id], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()));
  return { lines: () => text.split('\n'), stop: () => void child.kill() };
}

/**
 * Returns the log line that explains a refusal. The response says only that the database is
 * unreachable.
 */
function reasonIn(logs: readonly Log[], answer: string): string {
  const [, requestId] = /"requestId":"([^"]+)"/.exec(answer) ?? [];
  if (requestId === undefined) return 'the proxy refused the request';
  const lines = logs.flatMap((log) => log.lines());
  return lines.find((line) => line.includes(requestId)) ?? 'no gateway has logged it';
}

/**
 * Dials ten times a second until it is stopped. Returns `200` for each accepted request, and the
 * whole answer for each other one.
 */
async function askOften({ dialer }: World, stopped: AbortSignal): Promise<readonly string[]> {
  const answers: Promise<string>[] = [];
  for (let index = 0; !stopped.aborted; index += 1) {
    const target = `tel:+${numberFor('busy', 0, index)}`;
    const answer = dialer.post({ target });
    answers.push(
      answer.then(
        ({ status, body }) => (status === 200 ? '200' : `${status} ${JSON.stringify(body)}`),
        String,
      ),
    );
    await pause(100);
  }
  return await Promise.all(answers);
}

async function idOf(checkout: Checkout, service: string): Promise<string> {
  return (await checkout.compose('ps', '-aq', '--no-trunc', service)).trim();
}

async function inspect(checkout: Checkout, service: string, format: string): Promise<string> {
  const id = await idOf(checkout, service);
  return (await run('docker', ['inspect', '-f', format, id])).trim();
}

const imageOf = (checkout: Checkout, service: string) => inspect(checkout, service, '{{.Image}}');

const stateOf = (checkout: Checkout, service: string) =>
  inspect(checkout, service, '{{.State.Status}} {{.State.Health.Status}}');

/**
 * Kills a process as the kernel does when memory is short. Resolves when its container is healthy
 * again.
 */
async function killProcess(checkout: Checkout, service: string): Promise<void> {
  const startedAt = await inspect(checkout, service, '{{.State.StartedAt}}');
  process.kill(Number(await inspect(checkout, service, '{{.State.Pid}}')), 'SIGKILL');
  await eventually(
    async () =>
      (await inspect(checkout, service, '{{.State.StartedAt}}')) !== startedAt &&
      (await stateOf(checkout, service)) === 'running healthy',
    `${service} is healthy again`,
    patienceMs,
  );
}

async function survivesKill({ checkout, dialer, receiver, farEnd }: World): Promise<void> {
  const placed = await Promise.all(
    [1, 2, 3, 4].map((index) =>
      dialer.dial({ target: `tel:+${numberFor('stay', 0, 500 + index)}`, notifyurl: receiver.url }),
    ),
  );
  await eventually(
    () => placed.every(({ callId }) => glance(receiver.of(callId)).includes('Answered')),
    'the calls are up',
  );
  for (const gateway of gateways) await killProcess(checkout, gateway);
  for (const { callId } of placed) {
    const last = (await receiver.untilEnded(callId, patienceMs)).at(-1);
    assert.equal(last?.reasonCode, 'Gateway-disconnected');
  }
  await eventually(() => farEnd.up === 0, 'no phone is left in a call', patienceMs);
  say('killed gateways restart, their calls end, and no phone is left in a call');
}

async function reloads({ checkout, dialer, farEnd }: World): Promise<void> {
  const other = `  - name: other\n    numberFormat: digits\n    gateways: [{ host: 127.0.0.1, port: ${farEnd.port} }]`;
  await checkout.edit('sip-config/trunks.yaml', () => trunks(farEnd.port, other));
  await checkout.sh('chmod a+r sip-config/trunks.yaml');
  const command = commandOfProduction('docker compose exec gateway-1 sh -c');
  for (const gateway of gateways) await checkout.sh(command.replace('gateway-1', gateway));
  const knows = async () => {
    const target = `tel:+${numberFor('busy', 0, 700)}`;
    const asked = await Promise.all(
      [1, 2, 3, 4].map(() => dialer.post({ target, trunk: 'other' })),
    );
    return asked.every(({ status }) => status === 200);
  };
  await eventually(knows, 'both gateways know the new trunk');
  await killProcess(checkout, 'gateway-1');
  say('the trunks are reloaded, and a gateway that is killed afterwards still restarts');
}

async function editsProxy({ checkout }: World): Promise<void> {
  await checkout.edit('.docker/haproxy.cfg', (text) =>
    text.replace('maxconn 4000', 'maxconn 3999'),
  );
  await checkout.sh('chmod a+r .docker/haproxy.cfg');
  await checkout.sh(
    commandOfProduction('docker compose up -d --no-deps --force-recreate --wait proxy'),
  );
  const config = await checkout.compose(
    'exec',
    '-T',
    'proxy',
    'cat',
    '/usr/local/etc/haproxy/haproxy.cfg',
  );
  assert.match(config, /maxconn 3999/);
  assert.equal((await fetch(`${api}/ready`)).status, 200);
  say('the proxy uses an edited haproxy.cfg');
}

async function backsUpAndRestores({ checkout, dialer, receiver, farEnd }: World): Promise<void> {
  const { callId } = await dialer.dial({
    target: `tel:+${numberFor('talk', longTalkTenths, 800)}`,
    notifyurl: receiver.url,
  });
  await eventually(() => farEnd.up === 1, 'a call is up');
  await checkout.sh(commandOfProduction('(umask 077 && docker compose exec -T postgres pg_dump'));
  assert.match(await checkout.sh('stat -c %a offhook.dump'), /^600$/m);
  const ended = (await receiver.untilEnded(callId, patienceMs)).at(-1);
  // A newer version would leave tables that the dump does not have.
  await checkout.compose(
    'exec',
    '-T',
    'postgres',
    'psql',
    '-U',
    'offhook',
    '-c',
    'create table newer (like calls including all)',
  );
  await checkout.sh(commandOfProduction('docker compose stop gateway-1 gateway-2\n'));
  await eventually(
    async () => ((await dialer.call(callId)).body as { state: string }).state === 'ended',
    'the call has ended',
    patienceMs,
  );
  const { body: restored } = await dialer.call(callId);
  assert.equal((restored as { outcome: string }).outcome, 'completed', 'the outcome on the stream');
  for (const body of receiver.of(callId).filter(({ eventId }) => eventId === ended?.eventId)) {
    assert.deepEqual(
      decisiveMembers(body),
      decisiveMembers(ended),
      'an end that was sent before does not change',
    );
  }
  say('restored: a call that was up in the dump keeps its end');
}

/**
 * Restores to a moment at which one call had ended and another one was up. A third call comes
 * later.
 */
async function restoresToMoment(world: World): Promise<void> {
  const { checkout, dialer, receiver, farEnd } = world;
  const dial = (talkTenths: number, index: number) =>
    dialer.dial({
      target: `tel:+${numberFor('talk', talkTenths, index)}`,
      notifyurl: receiver.url,
    });
  const backUp = commandOfProduction('docker compose exec -T backup').split('\n');
  await checkout.sh(backUp[0] ?? '');
  const bases = await checkout.sh(backUp[1] ?? '');
  assert.match(bases, /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\n){2}$/);

  const before = await dial(1, 801);
  await receiver.untilEnded(before.callId, patienceMs);
  const during = await dial(longTalkTenths, 802);
  await eventually(() => farEnd.up === 1, 'a call is up');
  const moment = await wholeSecond();
  const after = await dial(1, 803);
  await receiver.untilEnded(after.callId, patienceMs);
  const ended = (await receiver.untilEnded(during.callId, patienceMs)).at(-1);

  const restore = commandOfProduction('docker compose stop gateway-1 gateway-2 backup');
  await checkout.sh(restore.replace('2026-03-01T10:00:00Z', moment));

  const stateOfCall = async (callId: string) => (await dialer.call(callId)).body as RestoredCall;
  await eventually(
    async () => (await stateOfCall(during.callId)).state === 'ended',
    'the call that was up has ended',
    patienceMs,
  );
  assert.equal((await stateOfCall(during.callId)).outcome, 'completed', 'as on the stream');
  assert.equal((await stateOfCall(before.callId)).outcome, 'completed');
  assert.equal((await dialer.call(after.callId)).status, 404);
  for (const body of receiver
    .of(during.callId)
    .filter(({ eventId }) => eventId === ended?.eventId)) {
    assert.deepEqual(decisiveMembers(body), decisiveMembers(ended));
  }
  // A restore begins a new timeline, so the archive begins a new chain with its own base backup.
  await eventually(
    async () => (await checkout.sh(backUp[1] ?? '')).length > bases.length,
    'there is a base backup of the restored database',
    patienceMs,
  );
  await places(world);
  say('restored to a moment: the calls before it are there, and the one after it is not');
}

type RestoredCall = { readonly state: string; readonly outcome: string };

/** Returns a whole second after everything that was written, as soon as it has passed. */
async function wholeSecond(): Promise<string> {
  const atMs = Math.ceil((Date.now() + 1) / 1_000) * 1_000;
  await eventually(() => Date.now() > atMs, 'the second has passed');
  return new Date(atMs).toISOString().replace('.000Z', 'Z');
}

async function restoresNats(world: World): Promise<void> {
  const { checkout } = world;
  const messages = async (): Promise<number> => {
    const report = 'docker compose exec -T nats wget -q -O - http://127.0.0.1:8222/jsz';
    return (JSON.parse(await checkout.sh(report)) as { messages: number }).messages;
  };
  const saved = await messages();
  await checkout.sh(commandOfProduction('docker compose stop nats\n(umask'));
  assert.match(await checkout.sh('stat -c %a nats.tgz'), /^600$/m);
  await places(world);
  await checkout.sh(commandOfProduction('docker compose stop nats\ndocker compose run'));
  const restored = await messages();
  assert.ok(restored >= saved, `${restored} of ${saved} messages are back`);
  await places(world);
  say(`NATS restored with its ${saved} messages`);
}

async function hasNoGateway({ checkout }: World): Promise<void> {
  await checkout.compose('stop', ...gateways);
  const response = await fetch(`${api}/openapi.json`);
  assert.equal(response.status, 503);
  assert.equal(response.headers.get('retry-after'), '5');
  assert.equal(response.headers.get('content-type'), 'application/problem+json');
  assert.equal(((await response.json()) as { status: number }).status, 503);
  assert.equal((await fetch(`${api}/ready`)).status, 503);
  say('without any gateway the proxy answers with a problem and a Retry-After');
}

/** The members of a notification that a receiver relies on. */
const decisiveMembers = (end: Notification | undefined) => [
  end?.sequence,
  end?.status,
  end?.reasonCode,
  end?.['timestamp'],
];
