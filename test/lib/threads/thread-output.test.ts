import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { startSandboxThread } from '../../../src/embedded/sandbox/sandbox-thread.ts';
import { relayOutput } from '../../../src/lib/threads/worker-threads.ts';
import { eventually } from '../../support/eventually.ts';
import { recordedLogger } from '../../support/recorded-logger.ts';

test('passes the log lines of a thread to the log of the process unchanged', async () => {
  const { logger, lines } = recordedLogger();
  const options = { sipHost: '127.0.0.1', logLevel: 'info', nodeId: 'laptop' };

  await using sandbox = await startSandboxThread(options, logger);

  await eventually(() => lines.length > 0, 'it is logged');
  expect(lines[0]).toMatchObject({
    level: 30,
    nodeId: 'laptop',
    part: 'sandbox',
    sip: `127.0.0.1:${sandbox.port}`,
    msg: 'sip engine is listening',
  });
});

test('logs other output of a thread as a warning that names the thread', async () => {
  const { logger, lines } = recordedLogger();
  const code = "console.log('out of memory'); console.error('aborted');";
  const worker = new Worker(code, { eval: true, stdout: true, stderr: true });

  relayOutput(worker, { logger, part: 'pglite' });
  await once(worker, 'exit');

  await eventually(() => lines.length === 2, 'both lines are logged');
  const written = lines.map(
    ({ level, part, output }) => `${String(level)} ${String(part)} ${String(output)}`,
  );
  expect(written.toSorted((a, b) => a.localeCompare(b))).toEqual([
    '40 pglite aborted',
    '40 pglite out of memory',
  ]);
});
