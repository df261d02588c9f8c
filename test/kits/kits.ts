// The receivers of src/notifier/kits, each started as its first line says, and scored by `offhook webhooks test`.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Finished, run } from '../cli/support.ts';
import { freeUdpPort } from '../support/free-port.ts';

export type Kit = {
  readonly file: string;
  /** To run `file` at a port, with a folder for what it makes. */
  command(port: number, folder: string): readonly [string, ...string[]];
};

const node = (file: string): Kit => ({ file, command: () => [process.execPath, file] });

export const nodeKits: readonly Kit[] = ['node.mjs', 'express.mjs', 'fastify.mjs'].map(node);

/** With what Debian has; `node src/setup.mjs --kits` installs it. */
export const otherKits: readonly Kit[] = [
  // Debian's own, which has Debian's Flask, and not another one that stands before it on PATH.
  { file: 'receiver.py', command: () => ['/usr/bin/python3', 'receiver.py'] },
  { file: 'receiver.go', command: () => ['go', 'run', 'receiver.go'] },
  {
    file: 'receiver.php',
    command: (port) => ['php', '-S', `127.0.0.1:${port}`, 'receiver.php'],
  },
  { file: 'receiver.rb', command: () => ['ruby', 'receiver.rb'] },
  {
    file: 'Receiver.java',
    command: () => ['java', '-cp', '/usr/share/java/gson.jar', 'Receiver.java'],
  },
];

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const kitsFolder = fileURLToPath(new URL('../../src/notifier/kits/', import.meta.url));

/** The first run of a compiler on a busy machine of two cores. */
const startTimeoutMs = 90_000;

export type Score = Finished & { readonly score: number | undefined };

/** By the strict rules: what its answers do not tell counts as failed. */
export async function scoreKit(kit: Kit): Promise<Score> {
  const folder = await mkdtemp(join(tmpdir(), 'offhook-kit-'));
  const port = await freeUdpPort();
  const [program, ...args] = kit.command(port, folder);
  const child = spawn(program, args, {
    cwd: kitsFolder,
    // A group of its own: `go run` and PHP's workers are processes of their own.
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe'],
    env: {
      PATH: process.env['PATH'],
      HOME: folder,
      WEBHOOK_SECRET: secret,
      PORT: String(port),
      // Of PHP: requests beside each other, and where it keeps its calls.
      PHP_CLI_SERVER_WORKERS: '4',
      CALLS_FOLDER: join(folder, 'calls'),
      // Of Python: nothing is written beside the kit.
      PYTHONDONTWRITEBYTECODE: '1',
    },
  });
  try {
    await listening(child, port);
    const url = `http://127.0.0.1:${port}/`;
    const command = ['webhooks', 'test', url, '--secret', secret, '--strict'];
    const finished = await run('cli', command, { DATA_DIR: join(folder, 'data') }).finished;
    const [, score] = /^score (\d+) of 100/m.exec(finished.out) ?? [];
    return { ...finished, score: score === undefined ? undefined : Number(score) };
  } finally {
    await stop(child);
    await rm(folder, { recursive: true, force: true });
  }
}

async function listening(child: ChildProcess, port: number): Promise<void> {
  let said = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (said += text));
  let failure: string | undefined;
  child.once('error', (error) => (failure = error.message));
  child.once('exit', (code) => (failure ??= `ended with ${code}`));
  const deadline = performance.now() + startTimeoutMs;
  while (!(await takesConnections(port))) {
    if (failure !== undefined) throw new Error(`the kit ${failure}:\n${said}`);
    if (performance.now() > deadline) throw new Error(`the kit does not listen:\n${said}`);
  }
}

async function takesConnections(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    await new Promise((resolve) => setTimeout(resolve, 50));
    return false;
  } finally {
    socket.destroy();
  }
}

async function stop(child: ChildProcess): Promise<void> {
  const { pid } = child;
  if (pid === undefined || child.exitCode !== null) return;
  const ended = once(child, 'exit');
  process.kill(-pid, 'SIGKILL');
  await ended;
}
