// Sets and lifts the limits of an app.

import { and, eq, isNull } from 'drizzle-orm';
import type { AppLimits } from '../calls/app-limits.ts';
import type { Database } from './database.ts';
import { apps } from './schema.ts';

/** What is undefined here is lifted, what is left out stays. */
export type LimitChange = {
  readonly [Limit in keyof AppLimits]?: AppLimits[Limit] | undefined;
} & { readonly tokenMaxTtlS?: number | undefined };

export type LimitedApp = { readonly limits: AppLimits; readonly tokenMaxTtlS?: number };

/** Undefined: unknown or revoked. */
export async function limitApp(
  { db }: Pick<Database, 'db'>,
  appId: string,
  change: LimitChange,
): Promise<LimitedApp | undefined> {
  return await db.transaction(async (transaction) => {
    const isIt = and(eq(apps.appId, appId), isNull(apps.revokedAt));
    const [app] = await transaction
      .select({ limits: apps.limits, tokenMaxTtlS: apps.tokenMaxTtlS })
      .from(apps)
      .where(isIt)
      .for('update');
    if (app === undefined) return undefined;
    const before = { ...app.limits, tokenMaxTtlS: app.tokenMaxTtlS ?? undefined };
    const { tokenMaxTtlS, ...after } = { ...before, ...change };
    const limits = Object.fromEntries(
      Object.entries(after).filter(([, value]) => value !== undefined),
    ) as AppLimits;
    const none = Object.keys(limits).length === 0;
    await transaction
      .update(apps)
      .set({ limits: none ? null : limits, tokenMaxTtlS: tokenMaxTtlS ?? null })
      .where(isIt);
    return { limits, ...(tokenMaxTtlS === undefined ? {} : { tokenMaxTtlS }) };
  });
}
