// Reads something again whenever it may have changed. Limits how often it is read, and never reads
// it twice at the same time.

import { useEffect, useRef, useState } from 'preact/hooks';

/**
 * Reads a value with `load`, and again when it may have changed. `pauseMs` is the shortest time
 * between two readings; it doubles while changes never stop, because each reading costs the gateway
 * work. `again` gets the result and returns the milliseconds until the next reading, or undefined
 * if only a change causes one. After an error the last value stays. A new `key` starts anew.
 * `watch` gets a function to call when something may have changed, and returns a function that
 * stops watching.
 */
export function useReading({ key, load, pauseMs = 0, again = () => undefined, watch }) {
  const [state, setState] = useState({});
  const reader = useRef(undefined);
  useEffect(() => {
    const publish = (change) =>
      // A value that was read under another key is not the last value of this one.
      setState((before) => ({
        ...(before.key === key ? before : {}),
        ...{ error: undefined, ...change, key },
      }));
    reader.current = createReader({ load, publish, pauseMs, again });
    const unwatch = watch?.(() => reader.current.soon());
    reader.current.now();
    return () => {
      reader.current.stop();
      unwatch?.();
    };
  }, [key]);
  const known = state.key === key ? state : {};
  return { ...known, again: () => reader.current.soon() };
}

const readingsUntilBusy = 4;

function createReader({ load, publish, pauseMs, again }) {
  let timer;
  let dueAt = 0;
  let startedAt = 0;
  let isReading = false;
  let isWanted = false;
  let isStopped = false;
  /** Consecutive readings that had to wait for the pause, because something happened during it. */
  let delayedInARow = 0;

  const now = async () => {
    clearTimeout(timer);
    timer = undefined;
    const sinceLastMs = performance.now() - startedAt;
    startedAt += sinceLastMs;
    delayedInARow = sinceLastMs < 2.5 * pauseMs ? delayedInARow + 1 : 0;
    isReading = true;
    const change = await load().then(
      (value) => ({ value }),
      (error) => ({ error }),
    );
    isReading = false;
    if (isStopped) return;
    publish(change);
    const pause = isWanted ? 0 : again(change);
    isWanted = false;
    if (pause !== undefined) later(pause);
  };
  const later = (ms) => {
    const at = Math.max(performance.now() + ms, startedAt + restMs());
    // Changes in the meantime do not postpone the reading.
    if (timer !== undefined && dueAt <= at) return;
    clearTimeout(timer);
    dueAt = at;
    timer = setTimeout(now, at - performance.now());
  };
  const restMs = () => (delayedInARow < readingsUntilBusy ? pauseMs : 2 * pauseMs);
  return {
    now,
    /** Waits 40 ms, because events often come together. */
    soon: () => {
      if (isReading) isWanted = true;
      else if (!isStopped) later(40);
    },
    stop: () => {
      isStopped = true;
      clearTimeout(timer);
    },
  };
}
