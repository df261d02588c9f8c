// Makes a busy machine quiet for the gateway of a bench (Linux, as root), because lateness can't be
// told from the machine's otherwise. The programs of the bench's terminal get nearly all of the CPU
// that they want, and no other thread delays the worker threads of this process. Other programs
// nearly stand still meanwhile, so do this for seconds only.

import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';

/** With autogroups, the kernel weighs sessions, so the nice value of a process says little. */
const autogroup = '/proc/self/autogroup';

export class Alone implements Disposable {
  constructor() {
    weigh(-20);
    schedule(['--fifo', '--pid', '5']);
  }

  [Symbol.dispose](): void {
    schedule(['--other', '--pid', '0']);
    weigh(0);
  }
}

function weigh(nice: number): void {
  if (existsSync(autogroup)) writeFileSync(autogroup, String(nice));
}

/** The main thread isn't among them: it stands for an application that needs a whole core. */
function schedule(options: readonly string[]): void {
  const threads = readdirSync('/proc/self/task').filter((id) => Number(id) !== process.pid);
  for (const id of threads) execFileSync('chrt', [...options, id]);
}
