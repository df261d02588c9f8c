// `npm run test:drachtio -- PATH` runs the tests of the SIP edge on a real drachtio-server, whose
// program is at PATH, instead of the embedded engine. It is not part of `npm test`, because there
// is no Debian package of drachtio-server.
//
//   npm run test:drachtio -- /usr/local/bin/drachtio                          everything
//   npm run test:drachtio -- /usr/local/bin/drachtio test/edge/digest.test.ts   one file
//
// Each test starts its own server. Tests declared `onlyEmbedded` (test/edge/engines.ts) are
// skipped: src/embedded/drachtio/DIFFERENCES.md lists what the two engines do differently.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../..', import.meta.url));

/** Files that place calls over real SIP, and leave everything else to the engine. */
const everything = [
  'test/edge',
  ...[
    ...['abandoned-legs', 'drachtio-sip', 'failover-wire', 'gateway-health', 'leg-headers'],
    ...['referral', 'registrations'],
  ].map((name) => `test/sip/${name}.test.ts`),
];

const [path, ...chosen] = process.argv.slice(2);
if (path === undefined) {
  throw new Error('npm run test:drachtio needs the path of a drachtio-server: -- PATH [FILE ...]');
}
const binary = resolve(path);
const { stdout, error } = spawnSync(binary, ['-v'], { encoding: 'utf8' });
const version = /v\d+\.\d+\.\d+\S*/.exec(stdout ?? '')?.[0];
if (error !== undefined || version === undefined) {
  throw new Error(
    `${binary} is not a drachtio-server: ${error?.message ?? 'it prints no version'}`,
  );
}
process.stdout.write(`drachtio-server ${version}\n`);

const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs');
const files = chosen.length > 0 ? chosen : everything;
// One file at a time: the servers have real timers, which a busy machine would miss.
const child = spawn(process.execPath, [vitest, 'run', '--maxWorkers=1', ...files], {
  ...{ cwd: root, stdio: 'inherit' },
  env: { ...process.env, TEST_DRACHTIO: binary },
});
const [code] = (await once(child, 'exit')) as [number | null];
process.exitCode = code ?? 1;
