// Decides in which order a call tries its trunk's gateways. Gateways that are up come first, then
// lower priorities. Within a priority, a gateway is drawn by weight, as RFC 2782 defines it for SRV
// records. The functions are pure, because the caller passes in the source of randomness (`Dice`).

type Weighed = { readonly priority: number; readonly weight: number };

/** Returns a random number from 0 up to, but not including, 1. */
export type Dice = () => number;

/**
 * Orders a trunk's gateways. We still try a gateway that is down, but last, because perhaps only
 * its probes fail.
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

/** Draws the gateways one by one. Each gateway's chance is its share of the remaining weight. */
function shuffledByWeight<Gateway extends Weighed>(
  gateways: readonly Gateway[],
  dice: Dice,
): readonly Gateway[] {
  const remaining = [...gateways];
  const drawn: Gateway[] = [];
  while (remaining.length > 0) drawn.push(...remaining.splice(drawIndex(remaining, dice), 1));
  return drawn;
}

/**
 * Draws a gateway and returns its index. Gateways with weight 0 are drawn after all others. The RFC
 * would give them a very small chance, but no one could rely on that.
 */
function drawIndex(gateways: readonly Weighed[], dice: Dice): number {
  const total = gateways.reduce((sum, { weight }) => sum + weight, 0);
  if (total === 0) return Math.floor(dice() * gateways.length);
  const mark = dice() * total;
  let sum = 0;
  return gateways.findIndex(({ weight }) => {
    sum += weight;
    return sum > mark;
  });
}
