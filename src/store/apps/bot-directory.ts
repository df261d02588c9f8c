// Stores which account owns each bot, and the names that requests may use for the bot. Requests can
// use unregistered bots too, but once a bot has been registered, it belongs to its account for
// good. Ids and stream aliases share one namespace.

import type { Clock } from '../../calls/ports.ts';
import type { RegisteredRecording } from '../../calls/recording/recording-request.ts';
import { isId } from '../../lib/ids.ts';
import { createLookupCache } from '../../lib/lookup-cache.ts';
import type { Database } from '../database.ts';
import { inTransaction } from '../transaction.ts';
import {
  type StreamAddress,
  type StreamColumns,
  streamOf,
  toStreamColumns,
} from './stream-addresses.ts';

export type Bot = {
  readonly botId: string;
  readonly accountId: string;
  /** A second identifier that requests may use for the bot. */
  readonly streamId?: string;
  readonly iconUrl?: string;
  /**
   * Receives a call's audio if the request doesn't contain an address. Omitted if the bot doesn't
   * have a default address.
   */
  readonly stream?: StreamAddress;
  /** How calls are recorded by default. Omitted if they aren't. */
  readonly recording?: RegisteredRecording;
};

/** The given fields replace the stored fields. Null removes the stream or the recording. */
export type ChangedBot = Omit<Bot, 'stream' | 'recording'> & {
  readonly stream?: StreamAddress | null;
  readonly recording?: RegisteredRecording | null;
};

export type BotDirectory = {
  /**
   * Finds a bot by its id or stream alias. Results are cached for a few seconds because every
   * request asks.
   *
   * @returns undefined if the bot is not registered
   */
  find(name: string): Promise<Bot | undefined>;
  /**
   * Returns the bot to which a published message belongs.
   *
   * @returns undefined in production if the bot is not registered
   */
  ownerOf(name: string): Promise<Bot | undefined>;
};

export type BotStore = BotDirectory & {
  /** Adds or changes a bot. If the bot exists, omitted fields keep their values. */
  add(bot: ChangedBot): Promise<AddedBot>;
  /** Lists all bots, oldest first. */
  list(): Promise<readonly Bot[]>;
};

export type AddedBot =
  | { readonly kind: 'stored'; readonly bot: Bot }
  | { readonly kind: 'refused'; readonly message: string };

export type BotDirectoryDependencies = {
  readonly database: Pick<Database, 'pool'>;
  readonly clock: Clock;
  /** The account that owns every unregistered bot: `dev` in the embedded profile. */
  readonly ownerOfUnknown?: string;
};

/**
 * If a parameter is null, the caller omitted the field, and the column doesn't change. For the
 * stream and the recording, null means removal, so $6 and $11 say whether the caller passed them.
 */
const upsert = `
insert into bots (bot_id, account_id, stream_id, icon_url, created_at, stream_url, stream_query, stream_connect, recording)
values ($1, $2, $3, $4, $5, $7, $8, $9, $10)
on conflict (bot_id) do update set stream_id = coalesce(excluded.stream_id, bots.stream_id),
  icon_url = coalesce(excluded.icon_url, bots.icon_url),
  stream_url = case when $6 then excluded.stream_url else bots.stream_url end,
  stream_query = case when $6 then excluded.stream_query else bots.stream_query end,
  stream_connect = case when $6 then excluded.stream_connect else bots.stream_connect end,
  recording = case when $11 then excluded.recording else bots.recording end
returning *`;

/** Other processes may miss a change for as long as the TTL. */
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
      // A producer may put anything into a subject. Without this check, the database would reject
      // the name each time the message is redelivered.
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
      return rows.map(toBot);
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
  return rows.map(toBot)[0];
}

async function addBot(
  { database, clock }: BotDirectoryDependencies,
  { botId, accountId, streamId, iconUrl, stream, recording }: ChangedBot,
): Promise<AddedBot> {
  const names = streamId === undefined ? [botId] : [botId, streamId];
  return await inTransaction(database.pool, async (client) => {
    // No index can keep the values of two columns distinct from each other. The lock is rarely
    // needed, because only operators' commands run this code.
    await client.query('lock table bots in share row exclusive mode');
    const { rows: named } = await client.query<BotColumns>(
      'select * from bots where bot_id = any($1) or stream_id = any($1)',
      [names],
    );
    const other = named.find((row) => row.bot_id !== botId);
    if (other !== undefined) {
      return { kind: 'refused', message: `one of the names already belongs to ${other.bot_id}` };
    }
    if (named.some((row) => row.account_id !== accountId)) {
      return { kind: 'refused', message: 'the bot belongs to another account' };
    }
    const { rows } = await client.query<BotColumns>(upsert, [
      ...[botId, accountId, streamId, iconUrl],
      ...[clock.now(), stream !== undefined],
      ...toStreamColumns(stream),
      ...[recording == null ? null : JSON.stringify(recording), recording !== undefined],
    ]);
    const [bot] = rows.map(toBot);
    if (bot === undefined) throw new Error('the bot was not stored');
    return { kind: 'stored', bot };
  });
}

type BotColumns = {
  readonly bot_id: string;
  readonly account_id: string;
  readonly stream_id: string | null;
  readonly icon_url: string | null;
  readonly recording: RegisteredRecording | null;
} & StreamColumns;

function toBot(row: BotColumns): Bot {
  const stream = streamOf(row);
  return {
    botId: row.bot_id,
    accountId: row.account_id,
    ...(row.stream_id === null ? {} : { streamId: row.stream_id }),
    ...(row.icon_url === null ? {} : { iconUrl: row.icon_url }),
    ...(stream === undefined ? {} : { stream }),
    ...(row.recording === null ? {} : { recording: row.recording }),
  };
}
