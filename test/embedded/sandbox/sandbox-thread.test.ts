// The sandbox in its worker thread.

import { expect, test } from 'vitest';
import { startSandboxThread } from '../../../src/embedded/sandbox/sandbox-thread.ts';
import { eventually } from '../../support/eventually.ts';
import { startCaller } from './support/caller.ts';

const options = { sipHost: '127.0.0.1', logLevel: 'silent', nodeId: 'test' };

test('answers, speaks, and hangs up when it is closed', async () => {
  const sandbox = await startSandboxThread(options);
  const caller = await startCaller(sandbox);
  const call = await caller.place('person-stays');
  expect((await call.final).status).toBe(200);
  await eventually(() => call.packets.length >= 10, 'audio');

  await sandbox.close();

  await call.hungUp;
  await caller.close();
});

test('reports the cause if its thread cannot start', async () => {
  const first = await startSandboxThread(options);

  await expect(startSandboxThread({ ...options, sipPort: first.port })).rejects.toThrow(
    'the sandbox did not start',
  );

  await first.close();
  await first.close();
});
