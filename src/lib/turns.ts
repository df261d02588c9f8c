// Limits how many pieces of work run at once. The others wait for their turn: first the urgent
// ones, then the rest. Within each group, the order of arrival counts.

type Turns = <Result>(work: () => Promise<Result>, how?: TurnOptions) => Promise<Result>;

type TurnOptions = { readonly isUrgent?: boolean };

type TurnLimits = {
  readonly running: number;
  /** Maximum number of waiting pieces of work. The next one is refused. */
  readonly waiting: number;
  /** Work that has waited this long is refused. Default: work waits without a limit. */
  readonly waitMs?: number;
};

export function takeTurns(most: TurnLimits, refusal: () => Error): Turns {
  let running = 0;
  const urgent: (() => void)[] = [];
  const waiting: (() => void)[] = [];
  const turnIn = (line: (() => void)[]): Promise<void> =>
    new Promise((resolve, reject) => {
      const giveUp = (): void => {
        line.splice(line.indexOf(begin), 1);
        reject(refusal());
      };
      const timer = most.waitMs === undefined ? undefined : setTimeout(giveUp, most.waitMs);
      const begin = (): void => {
        clearTimeout(timer);
        resolve();
      };
      line.push(begin);
    });
  return async (work, { isUrgent = false } = {}) => {
    if (running < most.running) running += 1;
    else if (urgent.length + waiting.length >= most.waiting) throw refusal();
    else await turnIn(isUrgent ? urgent : waiting);
    try {
      return await work();
    } finally {
      const next = urgent.shift() ?? waiting.shift();
      // The turn goes straight to the next piece of work, so that a newcomer cannot take it first.
      if (next === undefined) running -= 1;
      else next();
    }
  };
}
