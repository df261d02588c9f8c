// Starts each receiver of src/notifier/kits as its first lines say, and scores it with `offhook
// webhooks test`.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Finished, run } from '../cli/support.ts';
import { eventually } from '../support/eventually.ts';
import { freeUdpPort } from '../support/free-port.ts';

export type Kit = {
  readonly file: string;
  /** The command that runs `file` on a port. It may write into `folder`. */
  command(port: number, folder: string): readonly [string, ...string[]];
};

const node = (file: string): Kit => ({ file, command: () => [process.execPath, file] });

export const nodeKits: readonly Kit[] = ['node.mjs', 'express.mjs', 'fastify.mjs'].map(node);

/**
 * Receivers in other languages. They need Debian packages, which `node src/setup.mjs --kits`
 * installs.
 */
export const otherKits: readonly Kit[] = [
  // Debian's own Python can import Debian's Flask. Another Python may precede it on PATH.
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

/** Long enough for the first run of a compiler on a busy machine of two cores. */
const startTimeoutMs = 90_000;

export type Score = Finished & { readonly score: number | undefined };

/**
 * Scores a receiver by the strict rules: a check that its responses do not answer counts as failed.
 */
export async function scoreKit(kit: Kit): Promise<Score> {
  const folder = await mkdtemp(join(tmpdir(), 'offhook-kit-'));
  const port = await freeUdpPort();
  const [program, ...args] = kit.command(port, folder);
  const child = spawn(program, args, {
    cwd: kitsFolder,
    // A process group of its own, because `go run` and PHP start further processes.
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe'],
    env: {
      PATH: process.env['PATH'],
      HOME: folder,
      WEBHOOK_SECRET: secret,
      PORT: String(port),
      // PHP serves requests in parallel and keeps its calls in this folder.
      PHP_CLI_SERVER_WORKERS: '4',
      CALLS_FOLDER: join(folder, 'calls'),
      // Python must not write files beside the receiver.
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
  await eventually(
    async () => {
      if (failure !== undefined) throw new Error(`the kit ${failure}:\n${said}`);
      return await takesConnections(port);
    },
    () => `the kit listens; it wrote:\n${said}`,
    startTimeoutMs,
  );
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
