// The programs that the test needs. The container engine and debootstrap come from the Debian of
// this machine. Compose comes from the next Debian, because docker-compose.yml needs a newer
// version of it. Compose is unpacked into the cache and not installed.

import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { run, say } from './run.ts';

/** The Debian release of Compose and of the stand-ins for the base images. */
export const suite = 'trixie';

export const engineProgram = '/usr/sbin/dockerd';

const installed = [
  ['docker.io', engineProgram],
  ['debootstrap', '/usr/sbin/debootstrap'],
] as const;

export const composePlugin = (cache: string): string =>
  join(cache, 'cli-plugins', 'docker-compose');

export async function fetchPrograms(cache: string): Promise<void> {
  const missing = installed.filter(([, path]) => !existsSync(path)).map(([name]) => name);
  if (missing.length > 0) {
    say(`installing ${missing.join(', ')}`);
    const env = { DEBIAN_FRONTEND: 'noninteractive' };
    await run('apt-get', ['update'], { env });
    await run('apt-get', ['install', '-y', '--no-install-recommends', ...missing], { env });
  }
  if (!existsSync(composePlugin(cache))) await fetchCompose(cache);
}

/** Fetches Compose with package lists of its own, and leaves those of the system alone. */
async function fetchCompose(cache: string): Promise<void> {
  say(`fetching docker-compose of ${suite}`);
  const folder = await mkdtemp(join(cache, 'compose-'));
  try {
    await mkdir(join(folder, 'lists', 'partial'), { recursive: true });
    const keyring = '/usr/share/keyrings/debian-archive-keyring.gpg';
    const sources = join(folder, 'sources.list');
    await writeFile(sources, `deb [signed-by=${keyring}] ${await debianMirror()} ${suite} main\n`);
    const options = [
      `Dir::Etc::SourceList=${sources}`,
      'Dir::Etc::SourceParts=/dev/null',
      `Dir::State::Lists=${join(folder, 'lists')}`,
      `Dir::Cache=${folder}`,
      // apt downloads as a user that may not enter this folder.
      'APT::Sandbox::User=root',
    ].flatMap((option) => ['-o', option]);
    await run('apt-get', [...options, 'update']);
    await run('apt-get', [...options, 'download', 'docker-compose'], { cwd: folder });
    const [archive = ''] = (await readdir(folder)).filter((name) => name.endsWith('.deb'));
    await run('dpkg', ['-x', join(folder, archive), join(folder, 'root')]);
    await mkdir(join(cache, 'cli-plugins'), { recursive: true });
    const plugin = join(folder, 'root/usr/libexec/docker/cli-plugins/docker-compose');
    await rename(plugin, composePlugin(cache));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Returns the URL from which this machine gets its own packages. */
export async function debianMirror(): Promise<string> {
  const targets = await run('apt-get', [
    'indextargets',
    ...['--format', '$(REPO_URI) $(RELEASE)', 'Created-By: Packages'],
  ]);
  const [mirror] = targets
    .split('\n')
    .map((line) => line.split(' '))
    .filter(([uri = '', release = '']) => uri !== '' && !/-security|-updates/.test(release))
    .map(([uri = '']) => uri);
  if (mirror === undefined) throw new Error('apt-get is configured without a Debian mirror');
  return mirror;
}
