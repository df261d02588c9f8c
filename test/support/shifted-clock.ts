// A wall clock that a test shifts while gateways run: theirs and the test's own. Timers stay as
// they are, so calls and leases take their usual time, while hours pass for everything that goes by
// the date.

import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

export type ShiftedClock = AsyncDisposable & {
  /** Environment variables of a process that follows this clock. */
  readonly variables: Readonly<Record<string, string>>;
  /** Moves the clock forward. Resolves when each process has noticed. */
  forward(ms: number): Promise<void>;
};

/** Processes look every 20 ms, later on a busy machine. */
const noticedMs = 500;

export async function startShiftedClock(): Promise<ShiftedClock> {
  const folder = await mkdtemp(join(tmpdir(), 'offhook-clock-'));
  const file = join(folder, 'shift');
  const module = new URL('shifted-clock.mjs', import.meta.url).href;
  let shiftMs = 0;
  const write = async (): Promise<void> => {
    await writeFile(`${file}.new`, String(shiftMs));
    await rename(`${file}.new`, file);
  };
  await write();
  process.env['OFFHOOK_TEST_CLOCK'] = file;
  await import(module);
  return {
    variables: { NODE_OPTIONS: `--import ${module}`, OFFHOOK_TEST_CLOCK: file },
    forward: async (ms) => {
      shiftMs += ms;
      await write();
      await pause(noticedMs);
    },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}
