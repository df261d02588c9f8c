// DATA_DIR/runtime.json: the addresses of the running parts, for the command line and for
// operators. It contains credentials of the embedded parts, so only its owner may read it.

import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { z } from 'zod';
import type { Config } from '../config.ts';

const runtimeSchema = z.object({
  httpUrl: z.string(),
  /** The server for the command line, with its key. Only with the embedded database. */
  adminUrl: z.string().optional(),
  natsUrl: z.string(),
  /** Control connection of the first drachtio server, with its secret. */
  drachtioUrl: z.string(),
  /** The URI at which the sandbox carrier takes INVITEs. Absent if the sandbox does not run. */
  sandboxUri: z.string().optional(),
  pid: z.number(),
});

export type Runtime = z.infer<typeof runtimeSchema>;

export async function writeRuntime(
  config: Pick<Config, 'runtimeFile'>,
  runtime: Runtime,
): Promise<void> {
  // The file is renamed into place, so that a reader never sees half of it.
  const draft = `${config.runtimeFile}.${process.pid}`;
  await writeFile(draft, `${JSON.stringify(runtime, undefined, 2)}\n`, { mode: 0o600 });
  await rename(draft, config.runtimeFile);
}

export async function removeRuntime(config: Pick<Config, 'runtimeFile'>): Promise<void> {
  await rm(config.runtimeFile, { force: true });
}

/**
 * Reads runtime.json.
 * @returns undefined if no gateway runs with this DATA_DIR, or if the process that wrote the file
 *   is gone
 */
export async function readRuntime(
  config: Pick<Config, 'runtimeFile'>,
): Promise<Runtime | undefined> {
  try {
    const runtime = runtimeSchema.parse(JSON.parse(await readFile(config.runtimeFile, 'utf8')));
    return isAlive(runtime.pid) ? runtime : undefined;
  } catch {
    return undefined;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
