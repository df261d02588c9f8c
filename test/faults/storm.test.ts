// A short storm with a fixed seed. Longer ones: npm run test:faults -- --seconds 600

import { expect, test } from 'vitest';
import { openTestDatabase } from '../support/databases.ts';
import { runStorm } from './storm.ts';

test('whatever dies, every accepted call has its one end, and nobody is rung twice or left in a call', async () => {
  await using database = await openTestDatabase('postgres');
  const lines: string[] = [];
  const report = await runStorm({
    seed: 20_261_120,
    seconds: 12,
    callsPerSecond: 6,
    databaseUrl: database.location.databaseUrl ?? '',
    log: (line) => lines.push(line),
  });

  expect(report.violations, lines.join('\n')).toEqual([]);
  expect(report.counts['accepted']).toBeGreaterThan(20);
}, 240_000);
