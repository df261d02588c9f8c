// Reading something again and again: when it may have changed, at most once in a while, and never twice at a time.

import { useEffect, useRef, useState } from 'preact/hooks';

/**
 * `again`: of what was read, after how many milliseconds it is read again by itself; undefined: not at all. The last value stays
 * beside an error. Begins anew with `key`; `watch` is given what to call when something may have changed, and returns its removal.
 */
export function useReading({ key, load, pauseMs = 0, again = () => undefined, watch }) {
  const [state, setState] = useState({});
  const reader = useRef(undefined);
  useEffect(() => {
    const tell = (change) =>
      setState((before) => ({ ...before, error: undefined, ...change, key }));
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

function createReader({ load, tell, pauseMs, again }) {
  let timer;
  let startedAt = 0;
  let isReading = false;
  let isWanted = false;
  let isStopped = false;

  const now = async () => {
    clearTimeout(timer);
    timer = undefined;
    startedAt = performance.now();
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
    clearTimeout(timer);
    timer = setTimeout(now, Math.max(ms, startedAt + pauseMs - performance.now()));
  };
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
