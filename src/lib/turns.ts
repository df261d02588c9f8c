// Lets only so many pieces of work run at once. The others wait for their turn, first come, first served; the urgent ones before the rest.

type Turns = <Result>(work: () => Promise<Result>, how?: TurnOptions) => Promise<Result>;

type TurnOptions = { readonly isUrgent?: boolean };

/** `waiting`: one more than so many that wait gets `refusal`. */
export function takeTurns(
  most: { readonly running: number; readonly waiting: number },
  refusal: () => Error,
): Turns {
  let running = 0;
  const urgent: (() => void)[] = [];
  const waiting: (() => void)[] = [];
  return async (work, { isUrgent = false } = {}) => {
    if (running < most.running) running += 1;
    else if (urgent.length + waiting.length >= most.waiting) throw refusal();
    else await new Promise<void>((resolve) => (isUrgent ? urgent : waiting).push(resolve));
    try {
      return await work();
    } finally {
      const next = urgent.shift() ?? waiting.shift();
      // The turn is handed on, so that a newcomer does not take it in between.
      if (next === undefined) running -= 1;
      else next();
    }
  };
}
