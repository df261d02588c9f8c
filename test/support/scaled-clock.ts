// A clock that runs a fixed number of times faster than real time. Half a minute of a protocol
// passes within a second, and its timers still fire in order.

export type ScaledClock = {
  now(): number;
  setTimer(callback: () => void, delayMs: number): object;
  clearTimer(handle: object | undefined): void;
};

export function scaledClock(factor: number): ScaledClock {
  const startedAt = Date.now();
  const startedTicks = performance.now();
  return {
    now: () => startedAt + (performance.now() - startedTicks) * factor,
    setTimer: (callback, delayMs) => setTimeout(callback, delayMs / factor),
    clearTimer: (handle) => clearTimeout(handle as NodeJS.Timeout | undefined),
  };
}
