// DATA_DIR/runtime.json: what listens where, for the command line and for operators. It holds credentials of the private
// parts, so that only its owner may read it.

import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { z } from 'zod';
import type { Config } from '../config.ts';

const runtimeSchema = z.object({
  httpUrl: z.string(),
  /** For the command line, with its key; only with the embedded database. */
  adminUrl: z.string().optional(),
  natsUrl: z.string(),
  /** The first of several. */
  drachtioUrl: z.string(),
  /** Where the sandbox carrier takes INVITEs, if it runs. */
  sandboxUri: z.string().optional(),
  pid: z.number(),
});

export type Runtime = z.infer<typeof runtimeSchema>;

export async function writeRuntime(
  config: Pick<Config, 'runtimeFile'>,
  runtime: Runtime,
): Promise<void> {
  // Renamed into place: a reader never sees half of it.
  const draft = `${config.runtimeFile}.${process.pid}`;
  await writeFile(draft, `${JSON.stringify(runtime, undefined, 2)}\n`, { mode: 0o600 });
  await rename(draft, config.runtimeFile);
}

export async function removeRuntime(config: Pick<Config, 'runtimeFile'>): Promise<void> {
  await rm(config.runtimeFile, { force: true });
}

/** Undefined: nothing runs here, or what wrote the file was killed. */
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
