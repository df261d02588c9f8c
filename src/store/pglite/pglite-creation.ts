// The embedded database's folder, made on the first start, by a process of its own. PGlite runs PostgreSQL's initdb in a second
// database in memory and copies that to the folder as an archive: half a gigabyte, which a thread of this process would leave
// behind in its heaps, and the compiler's threads in theirs.

import { spawn } from 'node:child_process';
import { access, mkdtemp, readdir, rename, rm, rmdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { siblingModule } from '../../lib/threads/worker-threads.ts';

/** Takes 3 s on a laptop, and several times that on a crowded machine. */
const createTimeoutMs = 60_000;
/** Of what the process said when it failed: the error is at the end. */
const maxErrorLength = 2_000;

/** @throws Error where it cannot be made, or where the folder holds something that is no database. */
export async function ensurePgliteFolder(folder: string): Promise<void> {
  if (await exists(join(folder, 'PG_VERSION'))) return;
  // Where it is not installed, that is the error, and not what a process makes of it.
  import.meta.resolve('@electric-sql/pglite');
  if (await exists(folder)) await rmdir(folder);
  // Under another name, so that whatever interrupts it leaves no half a database; and a new one, because a process that was
  // killed may have left one that is still at work.
  const prefix = `${folder}-unfinished-`;
  await removeUnfinished(prefix);
  const unfinished = await mkdtemp(prefix);
  try {
    await createIn(unfinished);
    await rename(unfinished, folder);
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true });
    throw error;
  }
}

async function createIn(folder: string): Promise<void> {
  const program = siblingModule('./pglite-creation-process', import.meta.url);
  const loader = program.pathname.endsWith('.ts')
    ? ['--import', import.meta.resolve('tsx/esm')]
    : [];
  const child = spawn(process.execPath, [...loader, fileURLToPath(program), folder], {
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: createTimeoutMs,
  });
  // A start that is given up leaves nothing at work.
  const kill = (): boolean => child.kill('SIGKILL');
  process.once('exit', kill);
  child.once('close', () => process.removeListener('exit', kill));
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-maxErrorLength);
  });
  await new Promise<void>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => {
      if (code === 0) resolve();
      else reject(new Error(`it could not be created (${signal ?? code}): ${errors.trim()}`));
    });
  });
}

async function removeUnfinished(prefix: string): Promise<void> {
  const parent = dirname(prefix);
  for (const name of await readdir(parent)) {
    if (name.startsWith(basename(prefix)))
      await rm(join(parent, name), { recursive: true, force: true });
  }
}

async function exists(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return false;
      throw error;
    },
  );
}
