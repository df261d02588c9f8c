// Sets and lifts app limits, and configures how an app's numbers without `+` are read.

import type { AppLimits } from '../../calls/target/app-limits.ts';
import type { NumberReading } from '../../calls/target/number-reading.ts';
import type { Database } from '../database.ts';
import { inTransaction } from '../transaction.ts';
import { type AppColumns, readingOf } from './app-rows.ts';

/** An explicit `undefined` lifts the setting. If a field is omitted, its setting doesn't change. */
export type LimitChange = {
  readonly [Setting in keyof Settings]?: Settings[Setting] | undefined;
};

type Settings = AppLimits & NumberReading & { readonly tokenMaxTtlS?: number };

export type LimitedApp = { readonly limits: AppLimits } & NumberReading & {
    readonly tokenMaxTtlS?: number;
  };

type Columns = Pick<AppColumns, 'limits' | 'token_max_ttl_s' | 'default_country' | 'bare_numbers'>;

/** @returns undefined if the app is unknown or revoked */
export async function limitApp(
  { pool }: Pick<Database, 'pool'>,
  appId: string,
  change: LimitChange,
): Promise<LimitedApp | undefined> {
  return await inTransaction(pool, async (client) => {
    const { rows } = await client.query<Columns>(
      `select limits, token_max_ttl_s, default_country, bare_numbers
       from apps where app_id = $1 and revoked_at is null for update`,
      [appId],
    );
    const [app] = rows;
    if (app === undefined) return undefined;
    const { limits, ...others } = toLimitedApp(app, change);
    const { tokenMaxTtlS = null, defaultCountry = null, bareNumbers = null } = others;
    const limitsOrNull = Object.keys(limits).length === 0 ? null : limits;
    await client.query(
      `update apps set limits = $2, token_max_ttl_s = $3, default_country = $4, bare_numbers = $5
       where app_id = $1`,
      [appId, limitsOrNull, tokenMaxTtlS, defaultCountry, bareNumbers],
    );
    return { limits, ...others };
  });
}

function toLimitedApp(app: Columns, change: LimitChange): LimitedApp {
  const { tokenMaxTtlS, defaultCountry, bareNumbers, ...limits } = settingsAfter(app, change);
  return {
    limits,
    ...(tokenMaxTtlS === undefined ? {} : { tokenMaxTtlS }),
    ...(defaultCountry === undefined ? {} : { defaultCountry }),
    ...(bareNumbers === undefined ? {} : { bareNumbers }),
  };
}

function settingsAfter(app: Columns, change: LimitChange): Settings {
  const before = { ...app.limits, tokenMaxTtlS: app.token_max_ttl_s ?? undefined };
  const reading = readingAfter(readingOf(app), change);
  return Object.fromEntries(
    Object.entries({ ...before, ...reading, ...change }).filter(([, value]) => value !== undefined),
  ) as Settings;
}

/** Drops the previous reading if either setting is new, because an app can only have one. */
function readingAfter(before: NumberReading, change: LimitChange): NumberReading {
  const isReplaced = change.defaultCountry !== undefined || change.bareNumbers !== undefined;
  return isReplaced ? {} : before;
}
