// Takes the lock of the folder in its first argument. Writes `held`, or the reason why not. Holds
// the lock until the process is killed.

import { lockDataDir } from '../../src/embedded/data-dir-lock.ts';

await lockDataDir(process.argv[2] ?? '').then(
  () => {
    process.stdout.write('held\n');
    setInterval(() => undefined, 60_000);
  },
  (error: unknown) => {
    process.stdout.write(`${(error as Error).message}\n`);
  },
);
