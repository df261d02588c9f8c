// Boots systemd in namespaces of its own, and runs `systemctl` there.

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { eventually } from '../../support/eventually.ts';

const run = promisify(execFile);
const checkout = fileURLToPath(new URL('../../../', import.meta.url));
const script = fileURLToPath(new URL('boot.sh', import.meta.url));
/** `systemctl` waits for its job, and a stop waits for the calls of the test. */
const systemctlTimeoutMs = 60_000;
const bootTimeoutMs = 30_000;

export type BootedSystemd = AsyncDisposable & {
  systemctl(...words: readonly string[]): Promise<string>;
  /** Returns the properties of the unit, as `systemctl show` prints them. */
  show(unit: string): Promise<Readonly<Record<string, string>>>;
};

/** `settings` is the folder that appears as /etc/offhook. */
export async function bootSystemd(settings: string): Promise<BootedSystemd> {
  const namespaces = ['--pid', '--mount', '--uts', '--ipc', '--cgroup', '--mount-proc'];
  const options = ['--fork', '--kill-child', ...namespaces, '--propagation', 'private'];
  const child = spawn('unshare', [...options, 'sh', script, checkout, settings], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  // The namespaces end with their process 1, so nothing of them survives.
  const stop = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  };
  const inside = async (...command: readonly string[]): Promise<string> => {
    const target = ['--target', String(firstChild(child)), '--all'];
    const { stdout } = await run('nsenter', [...target, ...command], {
      timeout: systemctlTimeoutMs,
    });
    return stdout;
  };
  const systemctl: BootedSystemd['systemctl'] = (...words) => inside('systemctl', ...words);
  try {
    const isUp = async () =>
      await systemctl('is-active', 'multi-user.target').then(
        (state) => state.trim() === 'active',
        () => false,
      );
    await eventually(isUp, 'systemd has booted', bootTimeoutMs);
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    systemctl,
    show: async (unit) => {
      const lines = (await systemctl('show', unit)).trim().split('\n');
      return Object.fromEntries(
        lines.map((line) => {
          const [name = '', ...rest] = line.split('=');
          return [name, rest.join('=')] as const;
        }),
      );
    },
    [Symbol.asyncDispose]: stop,
  };
}

/** Returns process 1 of the namespaces, by its id in the host's. */
function firstChild({ pid }: ChildProcess): number {
  const found = readdirSync('/proc').find((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      return new RegExp(`^PPid:\\s+${pid}$`, 'm').test(
        readFileSync(`/proc/${name}/status`, 'utf8'),
      );
    } catch {
      // The process has ended in the meantime.
      return false;
    }
  });
  if (found === undefined) throw new Error('the namespaces have no process');
  return Number(found);
}
