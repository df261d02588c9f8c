// Bots: whose they are, and under which names requests may call them. A bot need not be registered to be dialled for;
// what is registered belongs to its account alone, for good. Ids and stream aliases are one set of names.

import type { Clock } from '../../calls/ports.ts';
import { isId } from '../../lib/ids.ts';
import { createLookupCache } from '../../lib/lookup-cache.ts';
import type { Database } from '../database.ts';
import { inTransaction } from '../transaction.ts';
import {
  type StreamAddress,
  type StreamColumns,
  streamColumnsOf,
  streamOf,
} from './stream-addresses.ts';

export type Bot = {
  readonly botId: string;
  readonly accountId: string;
  /** The other identifier that requests may use for it. */
  readonly streamId?: string;
  readonly iconUrl?: string;
  /** Where it takes the audio of calls whose request does not say; left out: nowhere. */
  readonly stream?: StreamAddress;
};

/** What is given replaces what there is; `stream: null` takes it away. */
export type ChangedBot = Omit<Bot, 'stream'> & { readonly stream?: StreamAddress | null };

export type BotDirectory = {
  /** By id or stream alias; undefined: not registered. Cached for a few seconds; every request asks. */
  find(name: string): Promise<Bot | undefined>;
  /** Whose what was published about a bot is: undefined in production for one that is not registered. */
  ownerOf(name: string): Promise<Bot | undefined>;
};

export type BotStore = BotDirectory & {
  /** Of a bot that its account registered before, what is left out stays as it is. */
  add(bot: ChangedBot): Promise<AddedBot>;
  /** Oldest first. */
  list(): Promise<readonly Bot[]>;
};

export type AddedBot =
  | { readonly kind: 'stored'; readonly bot: Bot }
  | { readonly kind: 'refused'; readonly message: string };

export type BotDirectoryDependencies = {
  readonly database: Pick<Database, 'pool'>;
  readonly clock: Clock;
  /** The account that owns every bot that is not registered: `dev` in the embedded profile. */
  readonly ownerOfUnknown?: string;
};

/** What is null was left out; of the audio stream that is said apart, as null takes it away. */
const upsert = `
insert into bots (bot_id, account_id, stream_id, icon_url, created_at, stream_url, stream_query, stream_connect)
values ($1, $2, $3, $4, $5, $7, $8, $9)
on conflict (bot_id) do update set stream_id = coalesce(excluded.stream_id, bots.stream_id),
  icon_url = coalesce(excluded.icon_url, bots.icon_url),
  stream_url = case when $6 then excluded.stream_url else bots.stream_url end,
  stream_query = case when $6 then excluded.stream_query else bots.stream_query end,
  stream_connect = case when $6 then excluded.stream_connect else bots.stream_connect end
returning *`;

/** How long a change goes unnoticed. */
const cacheOptions = { ttlMs: 5_000, maxEntries: 10_000 };

export function createBotDirectory(dependencies: BotDirectoryDependencies): BotStore {
  const { ownerOfUnknown, clock, database } = dependencies;
  const known = createLookupCache(
    (name: string) => readBot(dependencies, name),
    cacheOptions,
    () => clock.now().getTime(),
  );
  return {
    find: (name) => known.memo(name),
    async ownerOf(name) {
      // A producer may put anything in a subject: what the database refuses would come again and again.
      if (!isId(name)) return undefined;
      const bot = await known.memo(name);
      if (bot !== undefined || ownerOfUnknown === undefined) return bot;
      return { botId: name, accountId: ownerOfUnknown };
    },
    async add(bot) {
      const added = await addBot(dependencies, bot);
      known.clear();
      return added;
    },
    async list() {
      const { rows } = await database.pool.query<BotColumns>(
        'select * from bots order by created_at, bot_id',
      );
      return rows.map(botOf);
    },
  };
}

async function readBot(
  { database }: BotDirectoryDependencies,
  name: string,
): Promise<Bot | undefined> {
  const { rows } = await database.pool.query<BotColumns>(
    'select * from bots where bot_id = $1 or stream_id = $1',
    [name],
  );
  return rows.map(botOf)[0];
}

async function addBot(
  { database, clock }: BotDirectoryDependencies,
  { botId, accountId, streamId, iconUrl, stream }: ChangedBot,
): Promise<AddedBot> {
  const names = streamId === undefined ? [botId] : [botId, streamId];
  return await inTransaction(database.pool, async (client) => {
    // No index holds two columns to one set of names; this happens when an operator types a command.
    await client.query('lock table bots in share row exclusive mode');
    const { rows: named } = await client.query<BotColumns>(
      'select * from bots where bot_id = any($1) or stream_id = any($1)',
      [names],
    );
    const other = named.find((row) => row.bot_id !== botId);
    if (other !== undefined) {
      return { kind: 'refused', message: `one of its names is already a name of ${other.bot_id}` };
    }
    if (named.some((row) => row.account_id !== accountId)) {
      return { kind: 'refused', message: 'the bot belongs to another account' };
    }
    const { rows } = await client.query<BotColumns>(upsert, [
      ...[botId, accountId, streamId, iconUrl],
      ...[clock.now(), stream !== undefined],
      ...streamColumnsOf(stream),
    ]);
    const [bot] = rows.map(botOf);
    if (bot === undefined) throw new Error('the bot was not stored');
    return { kind: 'stored', bot };
  });
}

type BotColumns = {
  readonly bot_id: string;
  readonly account_id: string;
  readonly stream_id: string | null;
  readonly icon_url: string | null;
} & StreamColumns;

function botOf(row: BotColumns): Bot {
  const stream = streamOf(row);
  return {
    botId: row.bot_id,
    accountId: row.account_id,
    ...(row.stream_id === null ? {} : { streamId: row.stream_id }),
    ...(row.icon_url === null ? {} : { iconUrl: row.icon_url }),
    ...(stream === undefined ? {} : { stream }),
  };
}
