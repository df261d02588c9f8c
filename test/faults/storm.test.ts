// A short storm: a node killed and two stopped past their leases, one cut off from the database, NATS killed, the receiver
// refusing. Longer ones, which kill the SIP engine too: npm run test:faults -- --seconds 600

import { expect, test } from 'vitest';
import { openTestDatabase } from '../support/databases.ts';
import { runStorm } from './storm.ts';

test('whatever dies, every accepted call has its one end, and nobody is rung twice or left in a call', async () => {
  await using database = await openTestDatabase('postgres');
  const lines: string[] = [];
  const report = await runStorm({
    seed: 743,
    seconds: 9,
    callsPerSecond: 6,
    faultEveryMs: { from: 300, to: 1_500 },
    databaseUrl: database.location.databaseUrl ?? '',
    log: (line) => lines.push(line),
  });

  expect(report.violations, lines.join('\n')).toEqual([]);
  expect(report.counts['accepted']).toBeGreaterThan(20);
}, 240_000);
