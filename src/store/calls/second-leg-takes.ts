// Reserves what a second leg needs in the database: a slot on its trunk, and one of the calls that
// its app may still place today.

import type { Pool } from 'pg';
import type { SecondLegTakes } from '../../calls/dialout-ports.ts';

const dayMs = 86_400_000;

// Counts one leg, just as `limited-intake.ts` counts first legs. Returns no row if the app has
// reached its daily limit.
const countStatement = `
insert into app_usage as known (app_id, day, calls) select $1, $2::integer, 1 where $3::integer > 0
on conflict (app_id) do update set day = greatest(known.day, excluded.day),
  calls = case when known.day < excluded.day then 1 else known.calls + 1 end
where case when known.day < excluded.day then 0 else known.calls end < $3::integer
returning app_id`;

export function createSecondLegTakes(pool: Pool, ownerId: string): SecondLegTakes {
  return {
    async countToday(appId, maxToday, at) {
      const day = Math.floor(at.getTime() / dayMs);
      const { rowCount } = await pool.query(countStatement, [appId, day, maxToday]);
      return rowCount === 1;
    },
    async takeSlot({ legId, callId, trunk, limits }) {
      const { callsPerSecond, maxConcurrentCalls } = limits;
      const intervalMs = callsPerSecond === undefined ? 0 : 1_000 / callsPerSecond;
      const { rows } = await pool.query<{ start_in_ms: number; took_ms: number }>(
        'select * from take_slot($1, $2, $3, $4, $5, $6)',
        [legId, callId, trunk, ownerId, intervalMs, maxConcurrentCalls],
      );
      const [row] = rows;
      return row === undefined ? undefined : { startInMs: row.start_in_ms, tookMs: row.took_ms };
    },
  };
}
