// Runs a real rtpengine as the media relay of a carrier's SBC, without its kernel module.

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from './eventually.ts';
import { freePortRange, freeUdpPort } from './free-port.ts';
import { keepLog } from './gateway-logs.ts';
import { keepProgram } from './kept-program.ts';

export type Rtpengine = AsyncDisposable & {
  /** UDP port of the control protocol (`ng`). */
  readonly controlPort: number;
  readonly log: () => Promise<string>;
};

const startsWithinMs = 20_000;

/** @throws Error with the end of the log if rtpengine doesn't start */
export async function startRtpengine(): Promise<Rtpengine> {
  const folder = await mkdtemp(join(tmpdir(), 'offhook-rtpengine-'));
  const controlPort = await freeUdpPort();
  const ports = await freePortRange(100);
  const logFile = join(folder, 'log');
  const args = [
    ...['--foreground', '--log-stderr', '--log-level=7', '--config-file=none', '--table=-1'],
    ...['--interface=127.0.0.1', `--listen-ng=127.0.0.1:${controlPort}`, '--num-threads=2'],
    ...[`--port-min=${ports.portMin}`, `--port-max=${ports.portMax}`],
  ];
  const rtpengine = await keepProgram({ program: 'rtpengine', args, logFile, cwd: folder });
  const log = () => readFile(logFile, 'utf8');
  let last = '';
  keepLog(() => last);
  const stop = async () => {
    await rtpengine.end();
    last = await log();
    await ports[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
  };
  const isReady = async () => rtpengine.hasEnded() || (await log()).includes('Startup complete');
  await eventually(isReady, 'rtpengine starts', startsWithinMs);
  if (rtpengine.hasEnded()) {
    await stop();
    throw new Error(`rtpengine did not start: ${last.slice(-1_000)}`);
  }
  return { controlPort, log, [Symbol.asyncDispose]: stop };
}
