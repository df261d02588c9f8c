// Keeps a value up to date by reading it again whenever it may have changed, but not too often, and
// never twice at the same time.

import { useEffect, useRef, useState } from 'preact/hooks';

/**
 * Reads a value with `load`, and reads it again when it may have changed. `pauseMs` is the minimum
 * time between two reads. The pause doubles while changes keep coming, because each read causes
 * work for the gateway. `again` gets the result and returns the milliseconds until the next read,
 * or undefined to wait for a change. `watch` gets a function to call on a change, and returns a
 * function that stops watching. After an error we keep the last value. If `key` changes, reading
 * starts over.
 */
export function useReading({ key, load, pauseMs = 0, again = () => undefined, watch }) {
  const [state, setState] = useState({});
  const reader = useRef(undefined);
  useEffect(() => {
    const publish = (change) =>
      // Drop the value that belongs to the previous key.
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

/** After this many reads in quick succession, the pause doubles. */
const readsUntilBusy = 4;

function createReader({ load, publish, pauseMs, again }) {
  let timer;
  let dueAt = 0;
  let startedAt = 0;
  let isReading = false;
  let isWanted = false;
  let isStopped = false;
  /** Consecutive reads that started soon after the previous read, usually right after the pause. */
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
    // Further changes don't postpone a read that is already scheduled.
    if (timer !== undefined && dueAt <= at) return;
    clearTimeout(timer);
    dueAt = at;
    timer = setTimeout(now, at - performance.now());
  };
  const restMs = () => (delayedInARow < readsUntilBusy ? pauseMs : 2 * pauseMs);
  return {
    now,
    /** Waits 40 ms, because events often arrive in groups. */
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
