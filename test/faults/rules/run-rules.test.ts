// A short rules storm on each database. `npm run test:faults -- --rules 200000` runs long ones.

import { expect, test } from 'vitest';
import { databaseKinds } from '../../support/databases.ts';
import { runRules } from './rules-databases.ts';

test.each(databaseKinds)(
  'whatever dies or changes, no INVITE leaves that the calling rules forbid, on %s',
  async (on) => {
    const lines: string[] = [];
    const report = await runRules({
      ...{ on, seed: 21_358, calls: 1_000, log: (line) => lines.push(line) },
    });

    expect(report.violations, lines.join('\n')).toEqual([]);
    expect(report.counts['calls without an end']).toBe(0);
    expect(report.counts['INVITEs']).toBeGreaterThan(100);
    expect(report.counts['refused by attempts']).toBeGreaterThan(0);
  },
  240_000,
);
