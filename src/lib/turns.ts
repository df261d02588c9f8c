// Limits concurrent work. Any further work waits for its turn in order of arrival, except that
// urgent work goes first.

type Turns = <Result>(work: () => Promise<Result>, how?: TurnOptions) => Promise<Result>;

type TurnOptions = { readonly isUrgent?: boolean };

type TurnLimits = {
  readonly running: number;
  /** Limits the length of both queues together. Beyond that, work is rejected. */
  readonly waiting: number;
  /** Work that has waited this long is rejected. Default: no limit. */
  readonly waitMs?: number;
};

export function takeTurns(limits: TurnLimits, refusal: () => Error): Turns {
  let running = 0;
  const urgent: (() => void)[] = [];
  const waiting: (() => void)[] = [];
  const waitIn = (queue: (() => void)[]): Promise<void> =>
    new Promise((resolve, reject) => {
      const giveUp = (): void => {
        queue.splice(queue.indexOf(begin), 1);
        reject(refusal());
      };
      const timer = limits.waitMs === undefined ? undefined : setTimeout(giveUp, limits.waitMs);
      const begin = (): void => {
        clearTimeout(timer);
        resolve();
      };
      queue.push(begin);
    });
  return async (work, { isUrgent = false } = {}) => {
    if (running < limits.running) running += 1;
    else if (urgent.length + waiting.length >= limits.waiting) throw refusal();
    else await waitIn(isUrgent ? urgent : waiting);
    try {
      return await work();
    } finally {
      const next = urgent.shift() ?? waiting.shift();
      // Pass the turn directly to the next in line, so that new work can't jump the queue.
      if (next === undefined) running -= 1;
      else next();
    }
  };
}
