// A short storm. Two nodes are killed, one node is cut off from the database for longer than its
// lease, NATS is killed, and the receiver refuses requests. Four calls in ten have bots, which
// misbehave and are stopped and killed. `npm run test:faults -- --seconds 600` runs longer storms,
// which also stop nodes and kill the SIP engine.

import { expect, test } from 'vitest';
import { openTestDatabase } from '../support/databases.ts';
import { runStorm } from './storm.ts';

test('whatever dies, every accepted call ends exactly once, and no phone is called twice or left in a call', async () => {
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
