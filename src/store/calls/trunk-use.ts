// Counts the calls on each trunk and the calls waiting for it, across all nodes.

import type { Queries } from '../queries.ts';

export type TrunkUse = { readonly trunk: string; readonly onIt: number; readonly waiting: number };

const statement = {
  name: 'trunk use',
  text: `
select trunk, sum(on_it)::integer as "onIt", sum(waiting)::integer as waiting from (
  select trunk, count(*) as on_it, 0 as waiting from trunk_slots group by trunk
  union all
  select trunk, 0, count(*) from calls
  where end_published_at is null and not_before is null and ended_at is null and dial_started_at is null and trunk is not null group by trunk
) as counted group by trunk`,
} as const;

export async function trunkUse(queries: Queries): Promise<readonly TrunkUse[]> {
  return (await queries.query<TrunkUse>(statement)).rows;
}
