// Starts a real nats-server with JetStream and with further lines of configuration, e.g. for TLS or
// other users. It uses a folder that the test owns.

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findNatsServer } from '../../src/embedded/nats/nats-program.ts';
import { eventually } from './eventually.ts';
import { freeUdpPort } from './free-port.ts';
import { keepProgram } from './kept-program.ts';

export type ConfiguredNats = {
  readonly port: number;
  stop(): Promise<void>;
};

/** @param name the server's part of the folder */
export async function startConfiguredNats(
  folder: string,
  name: string,
  lines: string,
): Promise<ConfiguredNats> {
  const program = await findNatsServer(undefined, process.env['PATH'] ?? '');
  const port = await freeUdpPort();
  const path = join(folder, `${name}.conf`);
  const store = JSON.stringify(join(folder, name));
  await writeFile(
    path,
    `listen: "127.0.0.1:${port}"\njetstream { store_dir: ${store} }\n${lines}\n`,
  );
  const logFile = join(folder, `${name}.log`);
  const server = await keepProgram({ program, args: ['--config', path], logFile, cwd: folder });
  const output = () => readFile(logFile, 'utf8');
  await eventually(async () => {
    if (server.hasEnded()) throw new Error(`nats-server ended: ${await output()}`);
    return (await output()).includes('Server is ready');
  }, `nats-server is ready, see ${logFile}`);
  return { port, stop: () => server.end('KILL') };
}
