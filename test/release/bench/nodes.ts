// Many nodes: what a second one adds on this machine, whether three hold a trunk to its limits, and how long a killed one's
// calls go without their end. `--parts rate,trunk,kill` chooses.

import { benchKill } from './nodes-kill.ts';
import { benchRate } from './nodes-rate.ts';
import { benchTrunk } from './nodes-trunk.ts';
import { optionsOf } from './options.ts';

export async function benchNodes(args: readonly string[]): Promise<void> {
  const values = optionsOf(args, {
    parts: 'rate,trunk,kill',
    seconds: 10,
    rounds: 5,
    'trunk-seconds': 60,
    calls: 400,
    kills: 3,
  });
  const parts = values.parts.split(',');
  if (parts.includes('rate')) await benchRate(values.rounds, values.seconds);
  if (parts.includes('trunk')) await benchTrunk(values['trunk-seconds']);
  if (parts.includes('kill')) await benchKill(values.kills, values.calls);
}
