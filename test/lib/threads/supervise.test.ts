import { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { silentLogger } from '../../../src/lib/logger.ts';
import { whenStarted } from '../../../src/lib/threads/running-thread.ts';
import { supervise } from '../../../src/lib/threads/supervise.ts';
import { eventually } from '../../support/eventually.ts';

const supervision = { name: 'test', logger: silentLogger, pauseMs: 1 };

/**
 * Starts a thread that posts its id, fails when asked to die, and ends cleanly when asked to stop.
 */
async function startThread() {
  const worker = new Worker(
    `const { parentPort, threadId } = require('node:worker_threads');
     parentPort.on('message', (word) => {
       if (word === 'stop') parentPort.close();
       else throw new Error('died');
     });
     parentPort.postMessage(threadId);`,
    { eval: true },
  );
  const { first, thread } = await whenStarted<number>(worker, {
    name: 'the thread',
    stopMessage: 'stop',
  });
  return { ...thread, id: first, die: () => worker.postMessage('die'), worker };
}

test('restarts a thread each time it dies', async () => {
  const threads = [await startThread()];
  const again = async () => {
    const thread = await startThread();
    threads.push(thread);
    return thread;
  };
  const supervised = supervise(threads[0] as (typeof threads)[number], again, supervision);

  threads[0]?.die();
  await eventually(() => threads.length === 2, 'a second thread');
  threads[1]?.die();
  await eventually(() => threads.length === 3, 'a third thread');

  await supervised.close();
  expect(threads.map(({ worker }) => worker.threadId)).toEqual([-1, -1, -1]);
});

test('retries if a thread does not start', async () => {
  const first = await startThread();
  let tries = 0;
  const started: Awaited<ReturnType<typeof startThread>>[] = [];
  const again = async () => {
    tries += 1;
    if (tries < 3) throw new Error('the port is taken');
    const thread = await startThread();
    started.push(thread);
    return thread;
  };
  const supervised = supervise(first, again, supervision);

  first.die();
  await eventually(() => started.length === 1, 'a second thread');

  await supervised.close();
  expect(tries).toBe(3);
  expect(started[0]?.worker.threadId).toBe(-1);
});

test('leaves no thread behind that is starting during the close', async () => {
  const first = await startThread();
  let starts = 0;
  const started: Awaited<ReturnType<typeof startThread>>[] = [];
  const again = async () => {
    starts += 1;
    const thread = await startThread();
    started.push(thread);
    return thread;
  };
  const supervised = supervise(first, again, supervision);
  first.die();
  await eventually(() => starts === 1, 'a start');

  await supervised.close();

  expect(started.map(({ worker }) => worker.threadId)).toEqual([-1]);
});

test('does not restart a closed thread', async () => {
  const first = await startThread();
  let starts = 0;
  const supervised = supervise(
    first,
    () => {
      starts += 1;
      return startThread();
    },
    supervision,
  );

  await supervised.close();
  await supervised.close();

  expect(starts).toBe(0);
});

test('reports the cause if a thread ends before its first message', async () => {
  const worker = new Worker("throw new Error('no recordings')", { eval: true });

  await expect(
    whenStarted(worker, { name: 'the thread', stopMessage: 'stop' }),
  ).rejects.toMatchObject({
    message: 'the thread did not start',
    cause: { message: 'no recordings' },
  });
});
