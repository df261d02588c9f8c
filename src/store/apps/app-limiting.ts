// Sets and lifts the limits of an app.

import type { AppLimits } from '../../calls/app-limits.ts';
import type { Database } from '../database.ts';
import { inTransaction } from '../transaction.ts';

/** What is undefined here is lifted, what is left out stays. */
export type LimitChange = {
  readonly [Limit in keyof AppLimits]?: AppLimits[Limit] | undefined;
} & { readonly tokenMaxTtlS?: number | undefined };

export type LimitedApp = { readonly limits: AppLimits; readonly tokenMaxTtlS?: number };

type Columns = { readonly limits: AppLimits | null; readonly token_max_ttl_s: number | null };

/** Undefined: unknown or revoked. */
export async function limitApp(
  { pool }: Pick<Database, 'pool'>,
  appId: string,
  change: LimitChange,
): Promise<LimitedApp | undefined> {
  return await inTransaction(pool, async (client) => {
    const { rows } = await client.query<Columns>(
      'select limits, token_max_ttl_s from apps where app_id = $1 and revoked_at is null for update',
      [appId],
    );
    const [app] = rows;
    if (app === undefined) return undefined;
    const before = { ...app.limits, tokenMaxTtlS: app.token_max_ttl_s ?? undefined };
    const { tokenMaxTtlS, ...after } = { ...before, ...change };
    const limits = Object.fromEntries(
      Object.entries(after).filter(([, value]) => value !== undefined),
    ) as AppLimits;
    const none = Object.keys(limits).length === 0;
    await client.query('update apps set limits = $2, token_max_ttl_s = $3 where app_id = $1', [
      appId,
      none ? null : limits,
      tokenMaxTtlS ?? null,
    ]);
    return { limits, ...(tokenMaxTtlS === undefined ? {} : { tokenMaxTtlS }) };
  });
}
