// Bots: whose they are, and under which names requests may call them. A bot need not be registered to be dialled for;
// what is registered belongs to its account alone.

import { eq, or } from 'drizzle-orm';
import type { Clock } from '../calls/ports.ts';
import type { Database } from './database.ts';
import { ExpiringCache } from './expiring-cache.ts';
import { isId } from './ids.ts';
import { bots } from './schema.ts';

export type Bot = {
  readonly botId: string;
  readonly accountId: string;
  /** The other identifier that requests may use for it. */
  readonly streamId?: string;
  readonly iconUrl?: string;
};

export type BotDirectory = {
  /** By id or stream alias; undefined: not registered. Cached for a few seconds; every request asks. */
  find(name: string): Promise<Bot | undefined>;
  /** Whose what was published about a bot is: undefined in production for one that is not registered. */
  ownerOf(name: string): Promise<Bot | undefined>;
};

export type BotDirectoryDependencies = {
  readonly database: Pick<Database, 'db'>;
  readonly clock: Clock;
  /** The account that owns every bot that is not registered: `dev` in the embedded profile. */
  readonly ownerOfUnknown?: string;
};

/** How long a change goes unnoticed. */
const cacheOptions = { timeToLiveMs: 5_000, maxEntries: 10_000 };

export function createBotDirectory(dependencies: BotDirectoryDependencies): BotDirectory {
  const { ownerOfUnknown, clock } = dependencies;
  const known = new ExpiringCache(
    (name: string) => readBot(dependencies, name),
    cacheOptions,
    () => clock.now().getTime(),
  );
  return {
    find: (name) => known.get(name),
    async ownerOf(name) {
      // What was published on a subject may be anything; what is no id can never be asked for.
      if (!isId(name)) return undefined;
      const bot = await known.get(name);
      if (bot !== undefined || ownerOfUnknown === undefined) return bot;
      return { botId: name, accountId: ownerOfUnknown };
    },
  };
}

async function readBot(
  { database }: BotDirectoryDependencies,
  name: string,
): Promise<Bot | undefined> {
  const [row] = await database.db
    .select()
    .from(bots)
    .where(or(eq(bots.botId, name), eq(bots.streamId, name)));
  if (row === undefined) return undefined;
  return {
    botId: row.botId,
    accountId: row.accountId,
    ...(row.streamId === null ? {} : { streamId: row.streamId }),
    ...(row.iconUrl === null ? {} : { iconUrl: row.iconUrl }),
  };
}
