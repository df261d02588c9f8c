// Benches of several nodes: how many calls a second node adds on this machine, whether three nodes
// keep the limits of a trunk, and how long the calls of a killed node go without an end. `--parts
// rate,trunk,kill` chooses among them.

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
