// Bots: whose they are, and under which names requests may call them. A bot need not be registered to be dialled for;
// what is registered belongs to its account alone, for good. Ids and stream aliases are one set of names.

import { asc, eq, inArray, or, sql } from 'drizzle-orm';
import type { Clock } from '../calls/ports.ts';
import { isId } from '../lib/ids.ts';
import type { Database } from './database.ts';
import { ExpiringCache } from './expiring-cache.ts';
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

export type BotStore = BotDirectory & {
  /** Of a bot that its account registered before, what is left out stays as it is. */
  add(bot: Bot): Promise<AddedBot>;
  /** Oldest first. */
  list(): Promise<readonly Bot[]>;
};

export type AddedBot =
  | { readonly kind: 'stored'; readonly bot: Bot }
  | { readonly kind: 'refused'; readonly message: string };

export type BotDirectoryDependencies = {
  readonly database: Pick<Database, 'db'>;
  readonly clock: Clock;
  /** The account that owns every bot that is not registered: `dev` in the embedded profile. */
  readonly ownerOfUnknown?: string;
};

/** How long a change goes unnoticed. */
const cacheOptions = { timeToLiveMs: 5_000, maxEntries: 10_000 };

export function createBotDirectory(dependencies: BotDirectoryDependencies): BotStore {
  const { ownerOfUnknown, clock, database } = dependencies;
  const known = new ExpiringCache(
    (name: string) => readBot(dependencies, name),
    cacheOptions,
    () => clock.now().getTime(),
  );
  return {
    find: (name) => known.get(name),
    async ownerOf(name) {
      // A producer may put anything in a subject: what the database refuses would come again and again.
      if (!isId(name)) return undefined;
      const bot = await known.get(name);
      if (bot !== undefined || ownerOfUnknown === undefined) return bot;
      return { botId: name, accountId: ownerOfUnknown };
    },
    async add(bot) {
      const added = await addBot(dependencies, bot);
      known.clear();
      return added;
    },
    async list() {
      const rows = await database.db
        .select()
        .from(bots)
        .orderBy(asc(bots.createdAt), asc(bots.botId));
      return rows.map(toBot);
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
  return row === undefined ? undefined : toBot(row);
}

async function addBot(
  { database, clock }: BotDirectoryDependencies,
  { botId, accountId, streamId, iconUrl }: Bot,
): Promise<AddedBot> {
  const names = streamId === undefined ? [botId] : [botId, streamId];
  return await database.db.transaction(async (transaction) => {
    // No index holds two columns to one set of names; this happens when somebody types a command.
    await transaction.execute(sql`lock table ${bots} in share row exclusive mode`);
    const named = await transaction
      .select()
      .from(bots)
      .where(or(inArray(bots.botId, names), inArray(bots.streamId, names)));
    const other = named.find((row) => row.botId !== botId);
    if (other !== undefined) {
      return { kind: 'refused', message: `one of its names is already a name of ${other.botId}` };
    }
    if (named.some((row) => row.accountId !== accountId)) {
      return { kind: 'refused', message: 'the bot belongs to another account' };
    }
    const told = {
      ...(streamId === undefined ? {} : { streamId }),
      ...(iconUrl === undefined ? {} : { iconUrl }),
    };
    const [row] = await transaction
      .insert(bots)
      .values({ botId, accountId, ...told, createdAt: clock.now() })
      // `bot_id` to itself: an update that sets nothing is no SQL.
      .onConflictDoUpdate({ target: bots.botId, set: { botId, ...told } })
      .returning();
    if (row === undefined) throw new Error('the bot was not stored');
    return { kind: 'stored', bot: toBot(row) };
  });
}

function toBot(row: typeof bots.$inferSelect): Bot {
  return {
    botId: row.botId,
    accountId: row.accountId,
    ...(row.streamId === null ? {} : { streamId: row.streamId }),
    ...(row.iconUrl === null ? {} : { iconUrl: row.iconUrl }),
  };
}
