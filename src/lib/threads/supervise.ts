// Keeps a worker thread running.

import { setTimeout as pause } from 'node:timers/promises';
import type { Logger } from '../logger.ts';
import type { RunningThread } from './running-thread.ts';

type Thread = Pick<RunningThread, 'close' | 'onExit'>;

/** We wait a moment, because the dead thread's ports may still be in use. */
const restartPauseMs = 500;

type Supervision = { close(): Promise<void> };

/** Restarts the thread whenever it dies, until `close` is called. */
export function supervise(
  started: Thread,
  startAgain: () => Promise<Thread>,
  {
    name,
    logger,
    pauseMs = restartPauseMs,
  }: { readonly name: string; readonly logger: Logger; readonly pauseMs?: number },
): Supervision {
  let thread = started;
  const closing = new AbortController();
  let restarting: Promise<void> = Promise.resolve();
  const watch = (): void =>
    thread.onExit((error) => {
      logger.error({ err: error, thread: name }, 'a thread ended; starting it again');
      restarting = restart();
    });
  const restart = async (): Promise<void> => {
    while (!closing.signal.aborted) {
      try {
        thread = await startAgain();
        watch();
        return;
      } catch (error) {
        logger.error({ err: error, thread: name }, 'a thread did not start; trying again');
        await pause(pauseMs, undefined, { signal: closing.signal }).catch(() => undefined);
      }
    }
  };
  watch();
  return {
    async close() {
      closing.abort();
      // If a restart is in progress, wait for it. Otherwise the new thread would be left running.
      await restarting;
      await thread.close();
    },
  };
}
