// Runs the gateway in a terminal. `script` (of util-linux, which every Debian has) provides the
// terminal and types what the test sends.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { eventually } from './eventually.ts';
import { nodeOptions } from './gateway-process.ts';

const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
const startTimeoutMs = 60_000;

export type Terminal = {
  /** Returns everything that the terminal has shown. */
  screen(): string;
  until(text: string): Promise<void>;
  /** Presses Ctrl-C. */
  interrupt(): void;
  /** Closes the window: the program in it gets SIGHUP, and its later output is lost. */
  close(): void;
  /** Resolves with the exit code. */
  readonly ended: Promise<number | null>;
};

export function startInTerminal(variables: Readonly<Record<string, string>>): Terminal {
  const command = `exec ${process.execPath} ${nodeOptions.join(' ')} ${main}`;
  const child = spawn('script', ['-qefc', command, join('/dev', 'null')], {
    env: { PATH: process.env['PATH'], TERM: 'xterm', HTTP_PORT: '0', SIP_PORT: '0', ...variables },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let screen = '';
  child.stdout.on('data', (chunk: Buffer) => {
    screen += chunk.toString();
  });
  const ended = once(child, 'exit').then(([code]) => code as number | null);
  return {
    screen: () => screen,
    until: (text) =>
      eventually(() => screen.includes(text), `the screen shows: ${text}`, startTimeoutMs),
    interrupt: () => void child.stdin.write('\u0003'),
    close: () => void child.kill('SIGKILL'),
    ended,
  };
}
