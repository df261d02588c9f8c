// A short storm: two nodes killed, one cut off from the database for longer than its lease, NATS killed, the receiver refusing,
// and the bots of four calls in ten, which do what bots do wrong, stopped and killed. Longer ones, which stop nodes and kill the SIP
// engine too: npm run test:faults -- --seconds 600

import { expect, test } from 'vitest';
import { openTestDatabase } from '../support/databases.ts';
import { runStorm } from './storm.ts';

test('whatever dies, every accepted call has its one end, and no phone is rung twice or left in a call', async () => {
  await using database = await openTestDatabase('postgres');
  const lines: string[] = [];
  const report = await runStorm({
    seed: 21_358,
    seconds: 9,
    callsPerSecond: 6,
    faultEveryMs: { from: 300, to: 1_500 },
    databaseUrl: database.location.databaseUrl ?? '',
    log: (line) => lines.push(line),
  });

  expect(report.violations, lines.join('\n')).toEqual([]);
  expect(report.counts['accepted']).toBeGreaterThan(20);
  expect(report.counts['botConnections']).toBeGreaterThan(5);
}, 240_000);
