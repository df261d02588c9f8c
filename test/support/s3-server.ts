// Runs s3rver, an S3 server that others wrote, on a free port. It knows one access key, and refuses
// any other. It does not calculate the signatures of version 4.

import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { BucketTarget } from '../../src/recording/store/recording-store.ts';
import { eventually } from './eventually.ts';
import { freeUdpPort } from './free-port.ts';
import { type KeptProgram, keepProgram } from './kept-program.ts';

const program = join(
  dirname(fileURLToPath(import.meta.url)),
  '../../node_modules/s3rver/bin/s3rver.js',
);

export type TestS3 = {
  /** The bucket `recordings`, with the prefix `calls`. */
  readonly target: BucketTarget;
  /** Ends the server. Its objects stay. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Ends the server and removes its objects. */
  stop(): Promise<void>;
};

export async function startTestS3(): Promise<TestS3> {
  const folder = await mkdtemp(join(tmpdir(), 'offhook-s3-'));
  const port = await freeUdpPort();
  const endpoint = `http://127.0.0.1:${port}`;
  const start = async (): Promise<KeptProgram> => {
    const server = await keepProgram({
      program: process.execPath,
      args: [
        ...[program, '--directory', folder, '--port', String(port), '--address', '127.0.0.1'],
        ...['--silent', '--configure-bucket', 'recordings'],
      ],
      ...{ cwd: folder, logFile: join(folder, 's3.log') },
    });
    await eventually(
      () =>
        fetch(endpoint).then(
          async (response) => response.text().then(() => true),
          () => false,
        ),
      () => `the S3 server listens: ${readFileSync(join(folder, 's3.log'), 'utf8')}`,
    );
    return server;
  };
  let server = await start();
  return {
    target: {
      ...{ kind: 's3', bucket: 'recordings', prefix: 'calls', endpoint, region: 'us-east-1' },
      ...{ accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER', sessionToken: undefined },
    },
    pause: () => server.end(),
    async resume() {
      server = await start();
    },
    async stop() {
      await server.end();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
