// Tests `offhook doctor`, and the same checks at a start. Both run as separate processes, which
// exit with a code and a reason.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { CliContext } from '../../src/cli/cli-context.ts';
import { examine } from '../../src/cli/doctor-command.ts';
import { loadConfig } from '../../src/config.ts';
import { makeSeededDataDir } from '../support/databases.ts';
import { freeUdpPort } from '../support/free-port.ts';
import { startGateway } from '../support/gateway-process.ts';
import { type Finished, removeFolder, run, temporaryFolder } from './support.ts';

let folder: string;
beforeEach(async () => {
  folder = await temporaryFolder();
});
afterEach(() => removeFolder(folder));

const maxTries = 3;

type Variables = Readonly<Record<string, string>>;

async function doctor(args: readonly string[], variables: Variables = {}): Promise<Finished> {
  const free = String(await freeUdpPort());
  const env = { DATA_DIR: join(folder, 'data'), HTTP_PORT: free, SIP_PORT: '0', ...variables };
  for (let tries = 1; ; tries += 1) {
    const examined = await run('cli', ['doctor', ...args], env).finished;
    // Repeats the command if a check timed out, because the machine may have stood still for
    // seconds.
    if (tries === maxTries || !/did not finish within/.test(examined.out)) return examined;
  }
}

function checksIn({ out }: Finished): Readonly<Record<string, string>> {
  const lines = out.trim().split('\n');
  return Object.fromEntries(
    lines.map((line) => {
      const { check, state } = JSON.parse(line) as { check: string; state: string };
      return [check, state];
    }),
  );
}

describe('offhook doctor', () => {
  test('passes on a laptop, and leaves the data folder empty', async () => {
    const finished = await doctor(['--json']);

    expect(checksIn(finished)).toEqual({
      gateway: 'skipped',
      'data folder': 'ok',
      trunks: 'skipped',
      'speech-to-text': 'skipped',
      disk: expect.stringMatching(/ok|warning/) as string,
      ports: 'ok',
      'nats-server': 'ok',
      NATS: 'skipped',
      'NATS credentials': 'skipped',
      drachtio: 'skipped',
      database: 'skipped',
      clock: 'ok',
      recordings: expect.stringMatching(/ok|warning/) as string,
      receiver: 'skipped',
    });
    expect(finished.code).toBe(0);
    expect(await readdir(folder)).toEqual([]);
  });

  test('prints a line per problem, and exits with 1', async () => {
    const unusedPort = await freeUdpPort();
    const { code, out, err } = await doctor(['--notify', `http://127.0.0.1:${unusedPort}/`], {
      DATA_DIR: '/dev/null',
      NATS_URL: `nats://127.0.0.1:${unusedPort}`,
      STT_PROVIDERS_FILE: '/nowhere/stt.yaml',
    });

    expect(code).toBe(1);
    expect(out).toMatch(
      /^FAILED +data folder +DATA_DIR: \/dev\/null cannot be created: it is a file/m,
    );
    expect(out).toMatch(
      /^FAILED +speech-to-text +STT_PROVIDERS_FILE cannot be read: \/nowhere\/stt\.yaml\n {2}ENOENT/m,
    );
    expect(out).toMatch(/^FAILED +NATS +NATS_URL: .* no server listens there/m);
    expect(out).toMatch(/^FAILED +receiver +127\.0\.0\.1:\d+: no server listens there/m);
    expect(out).toMatch(/^ok +ports /m);
    expect(err).toBe('offhook: 5 of 14 checks failed\n');
  });

  test('checks a running gateway, and does not report its ports as taken', async () => {
    const dataDir = await makeSeededDataDir();
    const gateway = await startGateway(dataDir.path);
    const { port } = new URL(gateway.runtime.httpUrl);

    const finished = await doctor(['--json'], { DATA_DIR: dataDir.path, HTTP_PORT: port });
    await gateway.terminate();
    await dataDir.remove();

    expect(checksIn(finished)).toMatchObject({ gateway: 'ok', ports: 'skipped', NATS: 'ok' });
    expect(finished.code).toBe(0);
  }, 120_000);
});

test('offhook doctor says what the servers below a running gateway affect', async () => {
  const ready = {
    status: 'ready',
    servers: [
      { name: 'PostgreSQL', state: 'up', since: '2026-11-20T08:00:00.000Z' },
      {
        ...{ name: 'NATS', state: 'away', since: '2026-11-20T09:12:44.000Z' },
        affects: 'Calls continue. Events wait (1,204; the oldest for 40 s).',
      },
    ],
  };
  const server = createServer((_request, response) => response.end(JSON.stringify(ready)));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const httpUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const lines: string[] = [];
  const context: CliContext = {
    config: loadConfig({ DATA_DIR: join(folder, 'data') }),
    gateway: async () => ({ httpUrl }),
    print: (line) => lines.push(line),
    note: () => undefined,
    interrupted: new AbortController().signal,
  };

  // The other checks may find something on this machine.
  await examine(context, [], {}).catch(() => undefined);
  expect(lines.find((line) => line.includes(httpUrl))).toMatch(
    /^WARNING +gateway +runs on .+\. NATS is away since 2026-11-20T09:12:44\.000Z\. Calls continue\. Events wait \(1,204; the oldest for 40 s\)$/,
  );
});

describe('a start', () => {
  /** Starts a gateway that must fail. Returns the reason, which is all that it prints. */
  async function failure(variables: Variables): Promise<string> {
    const env = { DATA_DIR: join(folder, 'data'), HTTP_PORT: '0', SIP_PORT: '0', ...variables };
    const { code, err } = await run('main', [], { LOG_LEVEL: 'silent', ...env }).finished;
    expect(code).toBe(1);
    return err;
  }

  test.each([
    ['DATABASE_URL', 'foo', 'must be postgres://user:password@host:5432/database'],
    ['NATS_URL', 'foo', 'must be nats://user:password@host:4222, several separated by commas'],
    ['NATS_URL', 'nats://', 'must be nats://user:password@host:4222, several separated by commas'],
  ])('with %s=%s names the variable and the valid form', async (name, value, words) => {
    const secrets = { SECRETS_KEY: 'ab'.repeat(32) };

    expect(await failure({ [name]: value, ...secrets })).toBe(
      `offhook: Bad configuration:\n  ${name}: ${words}\n`,
    );
  });

  test('names DATA_DIR and the reason if the folder cannot be created', async () => {
    expect(await failure({ DATA_DIR: '/dev/null/x' })).toBe(
      'offhook: DATA_DIR: /dev/null/x cannot be created: a part of the path is a file (ENOTDIR)\n',
    );
  });

  test.runIf(process.platform === 'linux')(
    'fails in /proc, where Node would retry forever',
    async () => {
      expect(await failure({ DATA_DIR: '/proc/x' })).toBe(
        'offhook: DATA_DIR: /proc/x cannot be created: the file system accepts no folders there (ENOENT)\n',
      );
    },
  );

  test('fails on a full disk', async () => {
    // Simulates a full disk, even for root: no file may have a single byte.
    const child = spawn('sh', ['-c', `ulimit -f 0; exec ${process.execPath} dist/main.js`], {
      env: {
        PATH: process.env['PATH'],
        DATA_DIR: join(folder, 'data'),
        HTTP_PORT: '0',
        SIP_PORT: '0',
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let err = '';
    child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
    const [code] = (await once(child, 'close')) as [number | null];

    expect(code).toBe(1);
    expect(err).toMatch(/^offhook: DATA_DIR: .*data cannot be written: .*\(EFBIG\)\n$/);
  });

  test('reports mistakes in files before it checks ports, and opens nothing', async () => {
    const dataDir = join(folder, 'data');
    const trunks = join(folder, 'trunks.yaml');
    await writeFile(trunks, 'trunks:\n  - name: carrier\n    colour: red\n');
    const err = await failure({
      DATA_DIR: dataDir,
      HTTP_HOST: '203.0.113.9',
      TRUNKS_FILE: trunks,
      STT_PROVIDERS_FILE: '/nowhere/stt.yaml',
    });

    expect(err).toMatch(/^offhook: trunks\.yaml:2: trunks\[0\]/);
    expect(err).toContain('\n  trunks.yaml:2: trunks[0]: unknown: colour\n');
    expect(err).toContain('\n  STT_PROVIDERS_FILE cannot be read: /nowhere/stt.yaml\n  ENOENT');
    expect(err).not.toContain('HTTP_HOST');
    expect(await readdir(folder)).toEqual(['trunks.yaml']);
  });

  test('reports all problems before it opens anything', async () => {
    const dataDir = join(folder, 'data');
    const err = await failure({
      DATA_DIR: dataDir,
      HTTP_HOST: '203.0.113.9',
      NATS_SERVER_BIN: '/nowhere/nats-server',
    });

    expect(err).toContain('HTTP_HOST: 203.0.113.9 cannot be listened on');
    expect(err).toContain('NATS_SERVER_BIN is /nowhere/nats-server');
    expect(await readdir(dataDir)).toEqual([]);
  });
});
