// Tests `offhook nodes` on PostgreSQL, and through a gateway that has the embedded database open.

import { describe, expect, onTestFinished, test } from 'vitest';
import { readRuntime } from '../../src/app/runtime-file.ts';
import { listNodes } from '../../src/cli/nodes-command.ts';
import { loadConfig } from '../../src/config.ts';
import { createNodeStore } from '../../src/store/nodes.ts';
import { version } from '../../src/version.ts';
import { makeSeededDataDir, openTestDatabase } from '../support/databases.ts';
import { startGateway } from '../support/gateway-process.ts';

type Env = Readonly<Record<string, string>>;

async function listed(env: Env, options: { json?: boolean } = {}) {
  const config = loadConfig(env);
  const lines: string[] = [];
  const notes: string[] = [];
  const context = {
    config,
    gateway: () => readRuntime(config),
    print: (line: string) => void lines.push(line),
    note: (line: string) => void notes.push(line),
    interrupted: new AbortController().signal,
  };
  await listNodes(context, options);
  return { lines, notes };
}

/** The length of a lease that has expired when it begins. */
const expired = -60_000;

type Fill = (node: (id: string, leaseMs?: number) => Node) => unknown;
type Node = ReturnType<typeof createNodeStore> & { enter(): Promise<void> };

/**
 * Creates a database, fills it with `fill`, and returns the environment of a command that opens it.
 */
async function databaseWith(fill: Fill): Promise<Env> {
  const database = await openTestDatabase('postgres');
  onTestFinished(() => database.remove());
  await fill((nodeId, leaseMs = 60_000) => {
    const store = createNodeStore(database, `${nodeId}/1`, leaseMs);
    return {
      ...store,
      enter: () => store.register({ nodeId, version: '1.2.3', questionKey: 'key' }),
    };
  });
  const { databaseUrl = '', dataDir } = database.location;
  return { DATABASE_URL: databaseUrl, SECRETS_KEY: 'ab'.repeat(32), DATA_DIR: dataDir };
}

describe('offhook nodes', () => {
  test('prints a line per node in the order of their starts: state, calls, age of the lease, version', async () => {
    const env = await databaseWith(async (node) => {
      const [a, gone, b, late] = [
        node('gw-1'),
        node('gw-2', expired),
        node('gw-30'),
        node('gw-4', expired),
      ];
      for (const each of [a, gone]) await each.enter();
      await a.expireOthers('everyone');
      for (const each of [b, late]) await each.enter();
      await a.renew({ calls: 1, draining: false });
      await b.renew({ calls: 217, draining: true });
    });

    const { lines } = await listed(env);

    const rest = String.raw`lease \d+\.\d s old  1\.2\.3  since 20\d\d-\S+Z`;
    expect(lines).toHaveLength(4);
    expect(lines[0]).toMatch(new RegExp(`^gw-1   up        1 call     ${rest}$`));
    expect(lines[1]).toMatch(new RegExp(`^gw-2   lost      0 calls    ${rest}$`));
    expect(lines[2]).toMatch(new RegExp(`^gw-30  draining  217 calls  ${rest}$`));
    expect(lines[3]).toMatch(new RegExp(`^gw-4   late      0 calls    ${rest}$`));
  });

  test('prints one JSON object per line with --json', async () => {
    const env = await databaseWith((node) => node('gw-1').enter());

    const { lines } = await listed(env, { json: true });

    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
      {
        ownerId: 'gw-1/1',
        nodeId: 'gw-1',
        version: '1.2.3',
        startedAt: expect.stringMatching(/Z$/) as string,
        renewedAt: expect.stringMatching(/Z$/) as string,
        state: 'up',
        calls: 0,
        leaseAgeMs: expect.any(Number) as number,
      },
    ]);
  });

  test('reports that no gateway runs', async () => {
    const env = await databaseWith(() => undefined);

    expect(await listed(env)).toEqual({
      lines: [],
      notes: ['No gateway runs on this database.'],
    });
  });

  test('does not show a killed gateway as up', async () => {
    const dataDir = await makeSeededDataDir();
    onTestFinished(() => dataDir.remove());
    const env = { DATA_DIR: dataDir.path };
    const killed = await startGateway(dataDir.path, { NODE_ID: 'laptop' });
    await killed.kill();

    const { lines, notes } = await listed(env);
    expect(lines).toEqual([expect.stringMatching(/^laptop {2}lost {2}0 calls {2}/)]);
    expect(notes).toEqual(['No gateway runs on this database.']);

    const next = await startGateway(dataDir.path, { NODE_ID: 'laptop' });
    onTestFinished(async () => void (await next.terminate()));
    expect((await listed(env)).lines).toEqual([expect.stringMatching(/^laptop {2}up {2}0 calls /)]);
  });

  test('asks a gateway that has the embedded database open', async () => {
    const dataDir = await makeSeededDataDir();
    onTestFinished(() => dataDir.remove());
    const gateway = await startGateway(dataDir.path, { NODE_ID: 'laptop' });
    onTestFinished(async () => void (await gateway.terminate()));

    const { lines } = await listed({ DATA_DIR: dataDir.path }, { json: true });

    expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
      { nodeId: 'laptop', state: 'up', calls: 0, version },
    ]);
  });
});
