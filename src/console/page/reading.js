// Reading something again and again: when it may have changed, at most once in a while, and never twice at a time.

import { useEffect, useRef, useState } from 'preact/hooks';

/**
 * At most once in `pauseMs`, and where something happens all the time, once in twice that: each reading costs the gateway some.
 * `again`: of what was read, after how many milliseconds it is read again by itself; undefined: not at all. The last value stays
 * beside an error. Begins anew with `key`; `watch` is given what to call when something may have changed, and returns its removal.
 */
export function useReading({ key, load, pauseMs = 0, again = () => undefined, watch }) {
  const [state, setState] = useState({});
  const reader = useRef(undefined);
  useEffect(() => {
    const tell = (change) =>
      // What was read of something else is not the last value of this.
      setState((before) => ({
        ...(before.key === key ? before : {}),
        ...{ error: undefined, ...change, key },
      }));
    reader.current = createReader({ load, tell, pauseMs, again });
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

function createReader({ load, tell, pauseMs, again }) {
  let timer;
  let dueAt = 0;
  let startedAt = 0;
  let isReading = false;
  let isWanted = false;
  let isStopped = false;
  /** In a row, that were put off: something happened before the pause was over. */
  let putOff = 0;

  const now = async () => {
    clearTimeout(timer);
    timer = undefined;
    const sinceLastMs = performance.now() - startedAt;
    startedAt += sinceLastMs;
    putOff = sinceLastMs < 2.5 * pauseMs ? putOff + 1 : 0;
    isReading = true;
    const change = await load().then(
      (value) => ({ value }),
      (error) => ({ error }),
    );
    isReading = false;
    if (isStopped) return;
    tell(change);
    const pause = isWanted ? 0 : again(change);
    isWanted = false;
    if (pause !== undefined) later(pause);
  };
  const later = (ms) => {
    const at = Math.max(performance.now() + ms, startedAt + restMs());
    // Not put off by what comes meanwhile.
    if (timer !== undefined && dueAt <= at) return;
    clearTimeout(timer);
    dueAt = at;
    timer = setTimeout(now, at - performance.now());
  };
  const restMs = () => (putOff < readingsUntilBusy ? pauseMs : 2 * pauseMs);
  return {
    now,
    /** Some events come together. */
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
