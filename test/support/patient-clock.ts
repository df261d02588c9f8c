// A clock that stops while its process stands still, because it counts a pause of any length as a
// single step. After a pause, the process therefore gets to read its sockets before timers of a few
// hundred milliseconds fire. Otherwise the clock runs `factor` times faster than real time.

import type { EngineClock } from '../../src/embedded/drachtio/transaction/engine-timing.ts';

const lookEveryMs = 4;
const longestStepMs = 10;

type Timer = { readonly dueMs: number; handle: NodeJS.Timeout | undefined };

export function patientClock(factor = 1): EngineClock {
  let nowMs = Date.now();
  let lookedAt = performance.now();
  let looking: NodeJS.Timeout | undefined;
  const pending = new Set<Timer>();

  const look = (): number => {
    const ticks = performance.now();
    nowMs += Math.min(ticks - lookedAt, longestStepMs) * factor;
    lookedAt = ticks;
    return nowMs;
  };
  const remove = (timer: Timer): void => {
    if (!pending.delete(timer) || pending.size > 0) return;
    clearInterval(looking);
    looking = undefined;
  };
  const arm = (timer: Timer, callback: () => void): void => {
    const leftMs = (timer.dueMs - look()) / factor;
    timer.handle = setTimeout(
      () => {
        if (look() < timer.dueMs) {
          arm(timer, callback);
          return;
        }
        remove(timer);
        callback();
      },
      Math.max(1, Math.ceil(leftMs)),
    );
  };
  return {
    now: look,
    setTimer(callback, delayMs) {
      const timer: Timer = { dueMs: look() + delayMs, handle: undefined };
      pending.add(timer);
      looking ??= setInterval(look, lookEveryMs);
      arm(timer, callback);
      return timer;
    },
    clearTimer(handle) {
      const timer = handle as Timer | undefined;
      if (timer === undefined) return;
      clearTimeout(timer.handle);
      remove(timer);
    },
  };
}
