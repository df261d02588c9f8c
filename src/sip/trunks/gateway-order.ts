// Decides in which order a call tries the gateways of its trunk: gateways that are up before those
// that are down, then lower priorities first, then a choice by weight within one priority, as RFC
// 2782 defines it for SRV records. The functions are pure: the caller passes the dice.

type Weighed = { readonly priority: number; readonly weight: number };

/** Returns a random number from 0 up to, but not including, 1. */
export type Dice = () => number;

/**
 * Orders the gateways of a trunk. A gateway that is down is still tried, but last: perhaps only its
 * probes fail.
 */
export function orderGateways<Gateway extends Weighed>(
  gateways: readonly Gateway[],
  isUp: (gateway: Gateway) => boolean,
  dice: Dice,
): readonly Gateway[] {
  const up = gateways.filter(isUp);
  const down = gateways.filter((gateway) => !up.includes(gateway));
  return [...byPriority(up, dice), ...byPriority(down, dice)];
}

function byPriority<Gateway extends Weighed>(
  gateways: readonly Gateway[],
  dice: Dice,
): readonly Gateway[] {
  const priorities = [...new Set(gateways.map(({ priority }) => priority))].sort((a, b) => a - b);
  return priorities.flatMap((wanted) =>
    shuffledByWeight(
      gateways.filter(({ priority }) => priority === wanted),
      dice,
    ),
  );
}

/**
 * Draws one gateway after the other. The chance of each is its share of the weights that are left.
 */
function shuffledByWeight<Gateway extends Weighed>(
  gateways: readonly Gateway[],
  dice: Dice,
): readonly Gateway[] {
  const left = [...gateways];
  const drawn: Gateway[] = [];
  while (left.length > 0) drawn.push(...left.splice(drawnIndex(left, dice), 1));
  return drawn;
}

/**
 * Returns the index of the gateway that is drawn. A weight of 0 beside other weights is drawn last.
 * The RFC would give it a very small chance, on which nobody could rely.
 */
function drawnIndex(gateways: readonly Weighed[], dice: Dice): number {
  const total = gateways.reduce((sum, { weight }) => sum + weight, 0);
  if (total === 0) return Math.floor(dice() * gateways.length);
  const mark = dice() * total;
  let sum = 0;
  return gateways.findIndex(({ weight }) => {
    sum += weight;
    return sum > mark;
  });
}
