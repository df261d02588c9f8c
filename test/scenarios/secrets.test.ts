// Secrets of running gateways: changing SECRETS_KEY on two gateways one after the other, and a NATS
// server with TLS and nkeys.

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nkeys } from '@nats-io/transport-node';
import { expect, onTestFinished, test } from 'vitest';
import { reencryptSecrets } from '../../src/cli/secrets-command.ts';
import { createSecretBox } from '../../src/store/secrets.ts';
import { printedBy, run } from '../cli/support.ts';
import { createAppIn } from '../support/apps.ts';
import { createCa } from '../support/certificates.ts';
import { startCluster } from '../support/cluster.ts';
import { startConfiguredNats } from '../support/configured-nats.ts';
import { makeSeededDataDir, openTestDatabase } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { numberFor } from '../support/far-end.ts';
import { type GatewayProcess, startGateway } from '../support/gateway-process.ts';
import { isTerminal } from '../support/receiver.ts';
import { columnsWith } from '../support/sealed-values.ts';

const [oldKey, newKey] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
const oldHeader = createSecretBox(oldKey).headers.current;
const newHeader = createSecretBox(newKey).headers.current;
const onlyOld = { SECRETS_KEY: oldKey.toString('hex') };
const onlyNew = { SECRETS_KEY: newKey.toString('hex') };
const both = { ...onlyNew, SECRETS_KEY_PREVIOUS: oldKey.toString('hex') };

test('SECRETS_KEY changes on one gateway after the other, and no call misses a secret', async () => {
  await using database = await openTestDatabase('postgres');
  const { databaseUrl = '', dataDir } = database.location;
  await using cluster = await startCluster({
    databaseUrl,
    createApp: (url) => createAppIn(url, onlyOld.SECRETS_KEY),
  });
  const { receiver } = cluster;
  const sealedWith = (header: Buffer) => columnsWith(database.pool, header);
  let calls = 0;
  /** Each gateway accepts two calls. Any gateway may dial them and send their notifications. */
  const callThrough = async (...nodes: readonly GatewayProcess[]): Promise<void> => {
    for (const { dialer } of [...nodes, ...nodes]) {
      calls += 1;
      await dialer.dial({
        target: `tel:+${numberFor('busy', 0, calls)}`,
        notifyurl: receiver.url,
        notifyHeaders: { 'X-Call': String(calls) },
      });
    }
    const ends = () => receiver.received.filter(({ body }) => isTerminal(body));
    await eventually(() => ends().length === calls, 'every call’s last notification');
    expect(
      ends()
        .map(({ headers }) => Number(headers['x-call']))
        .toSorted((a, b) => a - b),
    ).toEqual(Array.from({ length: calls }, (_, index) => index + 1));
  };

  const [a, oldB] = await Promise.all([
    cluster.startNode('a', both),
    cluster.startNode('b', onlyOld),
  ]);
  // runtime.json doesn't repeat the credentials of configured servers.
  expect(Object.values(a.runtime).join(' ')).not.toMatch(/@|cluster/);
  await callThrough(a, oldB);
  // While b doesn't have the new key, nobody seals with it.
  expect(await sealedWith(newHeader)).toEqual([]);

  await oldB.terminate();
  const b = await cluster.startNode('b', both);
  const env = { DATABASE_URL: databaseUrl, DATA_DIR: dataDir, ...both };
  await callThrough(a, b);
  await printedBy(env, (context) => reencryptSecrets(context, {}));
  await callThrough(a, b);
  expect(await sealedWith(oldHeader)).toEqual([]);
  await a.terminate();
  const newA = await cluster.startNode('a', onlyNew);
  await callThrough(newA, b);
  expect(await sealedWith(oldHeader)).toEqual([]);
}, 120_000);

test('a gateway uses a NATS server with TLS and nkeys, and its secrets stay secret', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'offhook-secrets-'));
  const dataDir = await makeSeededDataDir();
  const ca = await createCa(folder, 'ca');
  const { cert, key } = await ca.issue('nats', 'IP:127.0.0.1');
  const user = nkeys.createUser();
  const nats = await startConfiguredNats(
    folder,
    'nats',
    `tls { cert_file: "${cert}", key_file: "${key}" }
     authorization { users: [{ nkey: ${user.getPublicKey()} }] }`,
  );
  onTestFinished(async () => {
    await nats.stop();
    await dataDir.remove();
    await rm(folder, { recursive: true, force: true });
  });
  const seed = Buffer.from(user.getSeed()).toString();
  const seedFile = join(folder, 'seed');
  await writeFile(seedFile, `${seed}\n`);
  const url = { NATS_URL: `tls://127.0.0.1:${nats.port}`, NATS_CA: ca.ca };
  const access = { ...url, NATS_NKEY_FILE: seedFile };

  const gateway = await startGateway(dataDir.path, { ...access, LOG_LEVEL: 'trace' });
  const ready = await fetch(`${gateway.runtime.httpUrl}/ready`);
  expect(await ready.json()).not.toHaveProperty('degraded');
  const runtime = await readFile(join(dataDir.path, 'runtime.json'), 'utf8');
  const { port } = new URL(gateway.runtime.httpUrl);
  const where = { DATA_DIR: dataDir.path, HTTP_PORT: port, SIP_PORT: '0' };
  const doctor = await run('cli', ['doctor', '--json'], { ...where, ...access }).finished;
  await gateway.terminate();

  expect(gateway.runtime.natsUrl).toBe(url.NATS_URL);
  expect(doctor.out).toMatch(/"check":"NATS","state":"ok"/);
  const refused = await run('main', [], { ...where, ...url, NATS_NKEY: wrongSeed() }).finished;
  expect(refused.err).toContain('NATS_NKEY: the server refused it');
  for (const text of [gateway.output(), runtime, doctor.out, refused.out, refused.err])
    expect(text).not.toMatch(/\bSU[A-Z2-7]{56}\b/);
}, 120_000);

function wrongSeed(): string {
  return Buffer.from(nkeys.createUser().getSeed()).toString();
}
