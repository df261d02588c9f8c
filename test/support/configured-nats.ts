// Starts a real nats-server with JetStream and with further lines of configuration, e.g. for TLS or
// other users. It uses a folder that the test owns.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findNatsServer } from '../../src/embedded/nats/nats-program.ts';
import { eventually } from './eventually.ts';
import { freeUdpPort } from './free-port.ts';

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
  const child = spawn(program, ['--config', path], { stdio: ['ignore', 'ignore', 'pipe'] });
  let output = '';
  child.stderr.on('data', (part: Buffer) => {
    output += part.toString();
  });
  await eventually(
    () => {
      if (child.exitCode !== null) throw new Error(`nats-server ended: ${output}`);
      return output.includes('Server is ready');
    },
    () => `nats-server is ready: ${output}`,
  );
  return {
    port,
    stop: async () => {
      if (child.exitCode !== null) return;
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}
