// Lets only so many pieces of work run at once. The others wait for their turn, first come, first served.

type Turns = <Result>(work: () => Promise<Result>) => Promise<Result>;

/** `waiting`: one more than so many that wait gets `refusal`. */
export function takeTurns(
  most: { readonly running: number; readonly waiting: number },
  refusal: () => Error,
): Turns {
  let running = 0;
  const waiting: (() => void)[] = [];
  return async (work) => {
    if (running < most.running) running += 1;
    else if (waiting.length >= most.waiting) throw refusal();
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      // The turn is handed on, so that a newcomer does not take it in between.
      if (next === undefined) running -= 1;
      else next();
    }
  };
}
