// Writes and reads DATA_DIR/runtime.json, which tells the command line and operators the addresses
// of the running parts. Only the file's owner may read it, because it contains the embedded parts'
// credentials. It doesn't contain those of configured servers.

import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { z } from 'zod';
import type { Config } from '../config.ts';

const runtimeSchema = z.object({
  httpUrl: z.string(),
  /** The command line's server, with its key. Absent unless the database is embedded. */
  adminUrl: z.string().optional(),
  natsUrl: z.string(),
  /** URL of the first drachtio server's control connection. With the secret if it's embedded. */
  drachtioUrl: z.string(),
  /** Where the sandbox carrier accepts INVITEs. Absent if the sandbox isn't running. */
  sandboxUri: z.string().optional(),
  pid: z.number(),
});

export type Runtime = z.infer<typeof runtimeSchema>;

export async function writeRuntime(
  config: Pick<Config, 'runtimeFile'>,
  runtime: Runtime,
): Promise<void> {
  // Rename the file into place so that a reader never sees a partial one.
  const draft = `${config.runtimeFile}.${process.pid}`;
  await writeFile(draft, `${JSON.stringify(runtime, undefined, 2)}\n`, { mode: 0o600 });
  await rename(draft, config.runtimeFile);
}

export async function removeRuntime(config: Pick<Config, 'runtimeFile'>): Promise<void> {
  await rm(config.runtimeFile, { force: true });
}

/**
 * Reads runtime.json.
 * @returns undefined if no gateway is running with this DATA_DIR, e.g. because the process that
 *   wrote the file is gone
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
