// Measures an idle embedded gateway: the memory of its process tree one minute after the start, and
// its CPU use in the following minute. It does this once on an empty folder, and once more after a
// restart on the same folder.

import { makeDataDir, startGateway } from '../../support/gateway-process.ts';
import { optionsOf } from './options.ts';
import { cpuSeconds, memoryOf, processTree } from './process-usage.ts';

export async function benchIdle(args: readonly string[]): Promise<void> {
  const { seconds } = optionsOf(args, { seconds: 60 });
  const dataDir = await makeDataDir();
  try {
    for (const start of ['first start, on an empty folder', 'later start'])
      await measure(start, dataDir.path, seconds);
  } finally {
    await dataDir.remove();
  }
}

async function measure(start: string, dataDir: string, seconds: number): Promise<void> {
  const startedAt = performance.now();
  const gateway = await startGateway(dataDir);
  try {
    console.log(`\n${start}`);
    print('up after', `${((performance.now() - startedAt) / 1_000).toFixed(1)} s`);
    await pause(seconds);
    const before = await usage(gateway.runtime.pid);
    for (const { name, residentMb, proportionalMb, peakMb } of before.processes) {
      const sizes = `${residentMb.toFixed(0)} MB (PSS ${proportionalMb.toFixed(0)}, peak ${peakMb.toFixed(0)})`;
      print(`resident after ${seconds} s, ${name}`, sizes);
    }
    const total = before.processes.reduce((sum, { residentMb }) => sum + residentMb, 0);
    print(`resident after ${seconds} s, total`, `${total.toFixed(0)} MB`);
    await pause(seconds);
    const after = await usage(gateway.runtime.pid);
    const share = ((after.cpu - before.cpu) / (after.at - before.at)) * 100_000;
    print(`CPU in the next ${seconds} s (user and system)`, `${share.toFixed(2)} % of a core`);
  } finally {
    await gateway.terminate();
  }
}

async function usage(pid: number) {
  const pids = await processTree(pid);
  const cpu = await Promise.all(pids.map(cpuSeconds));
  return {
    at: performance.now(),
    cpu: cpu.reduce((sum, used) => sum + used, 0),
    processes: await Promise.all(pids.map(memoryOf)),
  };
}

function pause(seconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
}

function print(what: string, value: string): void {
  console.log(`  ${what.padEnd(60)} ${value}`);
}
