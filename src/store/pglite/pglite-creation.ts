// Creates the embedded database with its tables on the first start, in a separate process. PGlite
// runs PostgreSQL's initdb in a second, in-memory database and copies the result to the folder as
// an archive. This needs half a gigabyte of memory, which would otherwise remain allocated in this
// process and in its compiler threads. Creating the tables there would leave another 10 MB.

import { spawn } from 'node:child_process';
import { access, mkdtemp, readdir, rename, rm, rmdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { siblingModule } from '../../lib/threads/worker-threads.ts';

/** Creating the database takes 3 s on a laptop, and several times that on an overloaded machine. */
const createTimeoutMs = 60_000;
/**
 * We keep this many characters from the end of the child's error output, because that's where the
 * error is.
 */
const maxErrorLength = 2_000;

/**
 * Creates the folder's database if there is no database yet. While the tables are created, the
 * database listens at `socketPath`.
 *
 * @throws Error if the database can't be created, or if the folder contains something else
 */
export async function ensurePgliteFolder(folder: string, socketPath: string): Promise<void> {
  if (await exists(join(folder, 'PG_VERSION'))) return;
  // If the package isn't installed, this throws a clear error before the child process would fail.
  import.meta.resolve('@electric-sql/pglite');
  if (await exists(folder)) await rmdir(folder);
  // We create the database under a different name, so that an interruption can't leave a half-made
  // database. The name is new each time because a killed process may have left behind a child that
  // is still running.
  const prefix = `${folder}-unfinished-`;
  await removeUnfinished(prefix);
  const unfinished = await mkdtemp(prefix);
  try {
    await createIn(unfinished, socketPath);
    await rename(unfinished, folder);
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true });
    throw error;
  }
}

async function createIn(folder: string, socketPath: string): Promise<void> {
  const program = siblingModule('./pglite-creation-process', import.meta.url);
  const loader = program.pathname.endsWith('.ts')
    ? ['--import', import.meta.resolve('tsx/esm')]
    : [];
  const parameters = [...loader, fileURLToPath(program), folder, socketPath];
  const child = spawn(process.execPath, parameters, {
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: createTimeoutMs,
  });
  // If this process exits, its child must not keep running.
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
      else
        reject(
          new Error(`the database could not be created (${signal ?? code}): ${errors.trim()}`),
        );
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
