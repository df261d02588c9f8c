// Builds another commit in a git worktree of its own, which is removed afterwards.

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const repository = fileURLToPath(new URL('../../../', import.meta.url));

export type Build = AsyncDisposable & {
  readonly name: string;
  /** The folder of main.js and cli.js, or of the tree. */
  readonly folder: string;
};

export function buildHere(): Build {
  return {
    name: 'this tree',
    folder: join(repository, 'dist'),
    async [Symbol.asyncDispose]() {
      // The build of this tree stays.
    },
  };
}

/** @param commit a commit to build, or the folder of a finished build */
export async function buildOf(commit: string): Promise<Build> {
  if (existsSync(join(commit, 'main.js')))
    return { ...buildHere(), name: basename(commit), folder: resolve(commit) };
  const { name, folder, [Symbol.asyncDispose]: dispose } = await treeOf(commit);
  try {
    await run('npm', ['run', '--silent', 'build'], { cwd: folder });
  } catch (error) {
    await dispose();
    throw new Error(`cannot build ${commit}`, { cause: error });
  }
  return { name, folder: join(folder, 'dist'), [Symbol.asyncDispose]: dispose };
}

/** Checks out another commit, with its packages. `folder` is the root of its tree. */
export async function treeOf(commit: string): Promise<Build> {
  const folder = await mkdtemp(join(tmpdir(), 'offhook-bench-build-'));
  const tree = join(folder, 'tree');
  const dispose = async (): Promise<void> => {
    await run('git', ['worktree', 'remove', '--force', tree], { cwd: repository }).catch(() => {
      // The worktree was never created.
    });
    await rm(folder, { recursive: true, force: true });
  };
  try {
    await run('git', ['worktree', 'add', '--detach', tree, commit], { cwd: repository });
    await installInto(tree);
  } catch (error) {
    await dispose();
    throw new Error(`cannot check out ${commit}`, { cause: error });
  }
  return { name: commit, folder: tree, [Symbol.asyncDispose]: dispose };
}

/**
 * Installs the packages. If both trees want the same packages, links those of this tree, because a
 * build does not write into them.
 */
async function installInto(tree: string): Promise<void> {
  const [lockHere, lockThere] = await Promise.all(
    [repository, tree].map((folder) => readFile(join(folder, 'package-lock.json'), 'utf8')),
  );
  if (lockHere === lockThere)
    await symlink(join(repository, 'node_modules'), join(tree, 'node_modules'));
  else await run('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: tree });
}
