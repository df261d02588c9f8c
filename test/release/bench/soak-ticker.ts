// A thread that only ticks like a media worker. If it is late, the machine is to blame.

import { setTimeout as pause } from 'node:timers/promises';
import { parentPort } from 'node:worker_threads';
import { PlayoutClock } from '../../../src/media/playout/playout.ts';
import { SendLateness, type SendLatenessCounts } from '../../../src/media/playout/send-lateness.ts';

export type Ticked = {
  readonly ticksLate: number;
  readonly maxLateMs: number;
  readonly lateness: SendLatenessCounts;
};

const lateness = new SendLateness();
let ticksLate = 0;
let maxLateMs = 0;

parentPort?.on('message', () => {
  parentPort?.postMessage({ ticksLate, maxLateMs, lateness: lateness.read() } satisfies Ticked);
});

const clock = new PlayoutClock(performance.now());
for (;;) {
  await pause(Math.max(1, Math.ceil(clock.dueMs - performance.now())));
  const nowMs = performance.now();
  maxLateMs = Math.max(maxLateMs, nowMs - clock.dueMs);
  clock.run(nowMs, (isInTime, dueMs) => {
    if (!isInTime) ticksLate += 1;
    lateness.note(nowMs - dueMs, 1);
  });
}
