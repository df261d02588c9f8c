// In what order a call tries the gateways of its trunk: those that are up before those that are down, lower priorities first,
// and within one priority a choice by weight, as RFC 2782 has it for SRV records. Pure; the dice are given.

type Weighed = { readonly priority: number; readonly weight: number };

/** 0 up to, but not including, 1. */
export type Dice = () => number;

/** A gateway that is down is tried last, not never: it may be our probes that fail. */
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

/** One after the other is drawn, each with the chance that its weight gives it among those that are left. */
function shuffledByWeight<Gateway extends Weighed>(
  gateways: readonly Gateway[],
  dice: Dice,
): readonly Gateway[] {
  const left = [...gateways];
  const drawn: Gateway[] = [];
  while (left.length > 0) drawn.push(...left.splice(drawnIndex(left, dice), 1));
  return drawn;
}

/** A weight of 0 beside others is drawn last; the RFC would give it a very small chance, which could not be relied on. */
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
