import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  type NatsServer,
  type NatsServerExit,
  startNatsServer,
} from '../../src/embedded/nats/nats-server.ts';
import { connectEvents } from '../../src/events/connection.ts';
import { silentLogger as logger } from '../../src/lib/logger.ts';
import { eventually } from '../support/eventually.ts';
import { recordedLogger } from '../support/recorded-logger.ts';

const searchPath = process.env['PATH'] ?? '';

describe('the private nats-server', () => {
  let dataDir: string;
  const servers: NatsServer[] = [];
  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'offhook-nats-'));
  });
  afterEach(async () => {
    for (const server of servers.splice(0)) await server.stop();
    await rm(dataDir, { recursive: true, force: true });
  });

  async function start(folder = dataDir): Promise<NatsServer> {
    const server = await startNatsServer({ dataDir: folder, searchPath, logger });
    servers.push(server);
    return server;
  }

  function isAlive(pid: number | undefined): boolean {
    try {
      return pid !== undefined && process.kill(pid, 0);
    } catch {
      return false;
    }
  }

  async function connect(url: string) {
    return await connectEvents({ url, prefix: 'test', name: 'test', logger });
  }

  test('writes its output to the log of the process, and its errors as errors', async () => {
    const { logger: recorded, lines } = recordedLogger('debug');
    const server = await startNatsServer({ dataDir, searchPath, logger: recorded });
    servers.push(server);
    const { host } = new URL(server.url);
    const stranger = `nats://nobody:nothing@${host}`;
    await expect(
      connectEvents({ url: stranger, prefix: 't', name: 't', logger, firstConnectTimeoutMs: 0 }),
    ).rejects.toThrow();

    const written = () => lines.filter(({ part }) => part === 'nats-server');
    await eventually(() => written().some(({ level }) => level === 50), 'it complains');
    expect(written()).toContainEqual(
      expect.objectContaining({ level: 20, output: 'Server is ready' }),
    );
    expect(written().find(({ level }) => level === 50)?.['output']).toContain(
      'authentication error',
    );
  });

  test('listens on loopback, and refuses clients without its credentials', async () => {
    const { url } = await start();
    const { host, hostname } = new URL(url);

    expect(hostname).toBe('127.0.0.1');
    const connection = await connect(url);
    expect(connection.connected()).toBe(true);
    await connection.close();
    await expect(
      connectEvents({
        url: `nats://${host}`,
        prefix: 'test',
        name: 'test',
        logger,
        firstConnectTimeoutMs: 0,
      }),
    ).rejects.toThrow('cannot connect');
  });

  test('keeps its credentials readable for its owner only, and off the command line', async () => {
    const { url, pid } = await start();
    const { password } = new URL(url);

    for (const name of ['identity.json', 'nats-server.conf']) {
      expect((await stat(join(dataDir, 'nats', name))).mode & 0o077).toBe(0);
    }
    expect(execFileSync('ps', ['-o', 'args=', '-p', String(pid)]).toString()).not.toContain(
      password,
    );
  });

  test('ends when it is stopped', async () => {
    const server = await start();
    const { pid } = server;

    await server.stop();
    await server.stop();

    expect(isAlive(pid)).toBe(false);
  });

  test('keeps its address and its data over a restart', async () => {
    const first = await start();
    const connection = await connect(first.url);
    await connection.manager.streams.add({ name: 'kept', subjects: ['kept'] });
    await connection.jetstream.publish('kept', 'still here');
    await connection.close();
    await first.stop();

    const second = await start();
    expect(second.url).toBe(first.url);
    const again = await connect(second.url);
    const message = await again.manager.streams.getMessage('kept', { seq: 1 });
    expect(message?.string()).toBe('still here');
    await again.close();
  });

  test('is started again when it dies, and connections are restored without help', async () => {
    const server = await start();
    const exits: NatsServerExit[] = [];
    server.onExit((exit) => exits.push(exit));
    const connection = await connect(server.url);
    const { pid } = server;

    process.kill(pid ?? 0, 'SIGKILL');
    await eventually(() => exits.length === 1, 'the death is told');
    expect(exits[0]).toMatchObject({ signal: 'SIGKILL' });
    await eventually(() => server.pid !== undefined && server.pid !== pid, 'a new process');
    await eventually(
      () =>
        connection.manager.getAccountInfo().then(
          () => true,
          () => false,
        ),
      'JetStream answers again',
    );

    expect(connection.connected()).toBe(true);
    await connection.close();
  });

  test('ends the server that a killed process left, and takes its store over', async () => {
    const script = `
      import { startNatsServer } from ${JSON.stringify(new URL('../../src/embedded/nats/nats-server.ts', import.meta.url).href)};
      import { silentLogger as logger } from ${JSON.stringify(new URL('../../src/lib/logger.ts', import.meta.url).href)};
      const server = await startNatsServer({ dataDir: process.argv[1], searchPath: process.argv[2], logger });
      console.log(JSON.stringify({ url: server.url, pid: server.pid }));
    `;
    const gateway = spawn(
      process.execPath,
      ['--import', 'tsx', '--input-type=module', '--eval', script, dataDir, searchPath],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    const [line] = (await once(createInterface({ input: gateway.stdout }), 'line')) as [string];
    const left = JSON.parse(line) as { readonly url: string; readonly pid: number };
    const connection = await connect(left.url);
    await connection.manager.streams.add({ name: 'kept', subjects: ['kept'] });
    await connection.jetstream.publish('kept', 'still here');
    await connection.close();
    gateway.kill('SIGKILL');
    await once(gateway, 'exit');
    expect(isAlive(left.pid)).toBe(true);

    const server = await start();

    // The port is the same, so the old server has released it.
    expect(server.pid).not.toBe(left.pid);
    expect(server.url).toBe(left.url);
    const again = await connect(server.url);
    expect((await again.manager.streams.getMessage('kept', { seq: 1 }))?.string()).toBe(
      'still here',
    );
    await again.close();
  });

  test('does not touch a process that only has the pid of the old server', async () => {
    const first = await start();
    await first.stop();
    await writeFile(join(dataDir, 'nats', 'nats-server.pid'), String(process.pid));

    const second = await start();

    expect(second.url).toBe(first.url);
  });

  test('moves to another port if another program has taken its port', async () => {
    const first = await start();
    await first.stop();
    const stranger = await listen(Number(new URL(first.url).port)).catch(isTaken);

    const second = await start();

    expect(new URL(second.url).port).not.toBe(new URL(first.url).port);
    stranger?.close();
  });

  test('reports a missing program and how to install it', async () => {
    await expect(
      startNatsServer({ dataDir, searchPath, program: '/no/such/nats-server', logger }),
    ).rejects.toThrow(/NATS_SERVER_BIN is \/no\/such\/nats-server.*apt-get install nats-server/);
  });

  test('reports a program that does not work, with its output', async () => {
    const program = join(dataDir, 'broken');
    await writeFile(program, '#!/bin/sh\necho out of order >&2\nexit 3\n');
    await chmod(program, 0o755);

    await expect(startNatsServer({ dataDir, searchPath, program, logger })).rejects.toThrow(
      'out of order',
    );
  });

  test('replaces an identity that a crash has truncated', async () => {
    const first = await start();
    await first.stop();
    const path = join(dataDir, 'nats', 'identity.json');
    await writeFile(path, (await readFile(path, 'utf8')).slice(0, 20));

    const second = await start();

    expect(second.url).not.toBe(first.url);
  });
});

/** Another program on this machine took the port first. */
function isTaken(error: unknown): undefined {
  if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
}

async function listen(port: number): Promise<Server> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  return server;
}
