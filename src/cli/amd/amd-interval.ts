// How sure a share of so many recordings is: the interval that the true share lies in, 95 times of 100 (Wilson's, which holds
// for few recordings and for shares near 0 and 1, where the textbook's does not).

import type { Share } from './amd-score.ts';

export type Interval = { readonly low: number; readonly high: number };

/** The normal distribution's quantile for 95 %. */
const z = 1.96;

/** Shares from 0 to 1; of nothing, anything. */
export function intervalOf({ count, of }: Share): Interval {
  if (of === 0) return { low: 0, high: 1 };
  const share = count / of;
  const middle = (share + z ** 2 / (2 * of)) / (1 + z ** 2 / of);
  const half =
    (z / (1 + z ** 2 / of)) * Math.sqrt((share * (1 - share)) / of + z ** 2 / (4 * of ** 2));
  return { low: Math.max(0, middle - half), high: Math.min(1, middle + half) };
}

/** `84–95 %` */
export function intervalText(share: Share): string {
  const { low, high } = intervalOf(share);
  return `${Math.round(100 * low)}–${Math.round(100 * high)} %`;
}
