// The end of a storm: waits until nothing is owed any more, and finds what is left in SQL.

import { setTimeout as pause } from 'node:timers/promises';
import type { Pool } from 'pg';
import type { Cluster } from '../support/cluster.ts';
import { makeWav } from '../support/wav.ts';
import type { FaultyBots } from './faulty-bots.ts';
import type { Traffic } from './traffic.ts';

/**
 * How long to wait after the faults. It exceeds every call, and every lease and retry that may
 * still be needed.
 */
const calmTimeoutMs = 120_000;
/** How long to wait for phones and bots that are still up. After this time nothing excuses them. */
const lastLookMs = 45_000;

export const oneSecondOfSilence = (): Buffer => makeWav({ samples: [new Int16Array(8_000)] });

/** Waits until the end of every call is published, and every notification is delivered. */
export async function untilNotified(
  world: {
    readonly cluster: Pick<Cluster, 'farEnd'>;
    readonly bots: Pick<FaultyBots, 'open'>;
  },
  traffic: Pick<Traffic, 'unnotified'>,
  pool: Pool,
  log: (line: string) => void,
): Promise<void> {
  const started = performance.now();
  for (;;) {
    const { rows } = await pool.query<{ owed: number }>(
      `select ((select count(*) from calls where end_published_at is null)
        + (select count(*) from notification_lanes))::integer as owed`,
    );
    const owed = rows[0]?.owed ?? 0;
    const { up } = world.cluster.farEnd;
    const { open } = world.bots;
    const unnotified = traffic.unnotified();
    const waitedMs = performance.now() - started;
    if (owed + unnotified + up + open === 0) return;
    // Phones and bots that are still in a call violate an invariant. Stop waiting for them.
    if (owed + unnotified === 0 && waitedMs > lastLookMs) return;
    if (waitedMs > calmTimeoutMs) {
      log(`gave up waiting: ${owed} owed, ${unnotified} unnotified, ${up} up, ${open} bots open`);
      return;
    }
    await pause(200);
  }
}

/** Returns the rows that are left in SQL although no node would ever look at them again. */
export async function leftovers(pool: Pool): Promise<readonly string[]> {
  const { rows } = await pool.query<{ what: string; count: number }>(
    `select 'calls without an end' as what, count(*)::integer from calls where ended_at is null
     union all select 'ends that were not published', count(*)::integer from calls
       where ended_at is not null and end_published_at is null
     union all select 'notifications owed', count(*)::integer from notification_lanes`,
  );
  return rows.filter((row) => row.count > 0).map((row) => `${row.count} ${row.what}`);
}
