// Runs other programs with a time-out. An error contains their output.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

export type RunOptions = {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly timeoutMs?: number;
};

/** Long enough to fetch a Debian base or to build an image on a busy machine. */
const defaultTimeoutMs = 10 * 60_000;
const longestOutputBytes = 64 * 1_024 * 1_024;

/**
 * Runs a program and returns its standard output.
 *
 * @throws Error with the whole output of the program if it fails.
 */
export async function run(
  program: string,
  args: readonly string[],
  { cwd, env, timeoutMs = defaultTimeoutMs }: RunOptions = {},
): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)(program, args, {
      cwd,
      env: { ...process.env, ...env },
      timeout: timeoutMs,
      killSignal: 'SIGKILL',
      maxBuffer: longestOutputBytes,
    });
    return stdout;
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    throw new Error(`${program} ${args.join(' ')}\n${stdout}${stderr}`, { cause: error });
  }
}

export function say(line: string): void {
  process.stdout.write(`${(performance.now() / 1_000).toFixed(1).padStart(6)} s  ${line}\n`);
}
