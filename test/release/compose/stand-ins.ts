// Stand-ins for the base images, for machines that cannot reach an image registry. They run the
// same programs, from Debian, with the same commands, and have the users, entry points and signals
// of the images that docker-compose.yml names.

import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import {
  copyFile,
  cp,
  mkdir,
  mkdtemp,
  readFile,
  realpath,
  rename,
  rm,
  writeFile,
} from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { repository } from '../../deployment/compose.ts';
import { debianMirror, suite } from './programs.ts';
import { run, say } from './run.ts';

const packages = [
  'busybox',
  'gosu',
  'haproxy',
  'libatomic1',
  'libstdc++6',
  'nats-server',
  'postgresql-17',
];

const hashOf = (...parts: readonly string[]): string =>
  createHash('sha256').update(parts.join('\n')).digest('hex').slice(0, 16);

/** Returns the files and folders of the cache. */
export const places = (cache: string) => ({
  base: join(cache, `base-${hashOf(suite, ...packages)}.tar`),
  /** The Node and npm of this machine. */
  node: join(cache, 'node'),
  /**
   * npm's cache with every package of the lock file. With it the image is built without a network.
   */
  npm: join(cache, 'npm'),
  drachtio: join(cache, 'drachtio'),
});

export async function fetchStandIns(cache: string, drachtio: string | undefined): Promise<void> {
  const { base, node, npm } = places(cache);
  if (!existsSync(base)) await fetchBase(base);
  await rm(node, { recursive: true, force: true });
  await mkdir(join(node, 'bin'), { recursive: true });
  await copyFile(process.execPath, join(node, 'bin', 'node'));
  await cp(await npmFolder(), join(node, 'lib', 'node_modules', 'npm'), { recursive: true });
  await fetchPackages(npm);
  await rm(places(cache).drachtio, { recursive: true, force: true });
  if (drachtio !== undefined) await copyProgram(drachtio, places(cache).drachtio);
}

async function fetchBase(tar: string): Promise<void> {
  say(`fetching a base of ${suite}`);
  const folder = await mkdtemp(join(dirname(tar), 'base-'));
  try {
    const root = join(folder, 'root');
    const include = `--include=${packages.join(',')}`;
    await run('debootstrap', ['--variant=minbase', include, suite, root, await debianMirror()]);
    for (const path of ['var/cache/apt', 'var/lib/apt/lists', 'usr/share/doc', 'usr/share/man']) {
      await rm(join(root, path), { recursive: true, force: true });
    }
    await run('tar', ['-C', root, '-cf', `${tar}.new`, '.']);
    await rename(`${tar}.new`, tar);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function npmFolder(): Promise<string> {
  const program = (await run('sh', ['-c', 'command -v npm'])).trim();
  return dirname(dirname(await realpath(program)));
}

async function fetchPackages(cache: string): Promise<void> {
  const files = ['package.json', 'package-lock.json', '.npmrc'];
  const texts = await Promise.all(files.map((file) => readFile(join(repository, file), 'utf8')));
  const stamp = join(cache, 'fetched');
  const wanted = hashOf(...texts);
  if (existsSync(stamp) && (await readFile(stamp, 'utf8')) === wanted) return;
  say('fetching the packages of the lock file');
  await mkdir(cache, { recursive: true });
  const folder = await mkdtemp(join(dirname(cache), 'packages-'));
  try {
    for (const file of files) await copyFile(join(repository, file), join(folder, file));
    await run('npm', ['ci', '--ignore-scripts', '--cache', cache], { cwd: folder });
    await writeFile(stamp, wanted);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Copies a program with its libraries of this Debian, except for the C library. */
async function copyProgram(program: string, folder: string): Promise<void> {
  await mkdir(join(folder, 'lib'), { recursive: true });
  await copyFile(program, join(folder, 'drachtio'));
  const libraries = [...(await run('ldd', [program])).matchAll(/=> (\/\S+)/g)].map(
    ([, path = '']) => path,
  );
  for (const path of libraries.filter((each) => !/\/lib(c|m|dl|rt|pthread)\.so/.test(each))) {
    await copyFile(path, join(folder, 'lib', basename(path)));
  }
}
