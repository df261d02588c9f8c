// Many nodes: what a second one adds on this machine, whether three hold a trunk to its limits, and how long a killed one's
// calls go without their end. `--parts rate,trunk,kill` chooses.

import { parseArgs } from 'node:util';
import { benchKill } from './nodes-kill.ts';
import { benchRate } from './nodes-rate.ts';
import { benchTrunk } from './nodes-trunk.ts';

export async function benchNodes(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      parts: { type: 'string', default: 'rate,trunk,kill' },
      seconds: { type: 'string', default: '10' },
      rounds: { type: 'string', default: '5' },
      'trunk-seconds': { type: 'string', default: '60' },
      calls: { type: 'string', default: '400' },
      kills: { type: 'string', default: '3' },
    },
  });
  const parts = values.parts.split(',');
  if (parts.includes('rate')) await benchRate(Number(values.rounds), Number(values.seconds));
  if (parts.includes('trunk')) await benchTrunk(Number(values['trunk-seconds']));
  if (parts.includes('kill')) await benchKill(Number(values.kills), Number(values.calls));
}
