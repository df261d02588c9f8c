// Stores accounts' sounds in the database, in the format that calls play.

import { randomUUID } from 'node:crypto';
import type { PoolClient } from 'pg';
import type { Clock } from '../calls/ports.ts';
import type { Database } from '../store/database.ts';
import { inTransaction } from '../store/transaction.ts';
import type { Converter } from './converter.ts';

export type StoredSound = {
  readonly name: string;
  readonly durationMs: number;
  /** Size of the stored µ-law audio. */
  readonly bytes: number;
  /** SHA-256 of the stored audio, in hexadecimal digits. */
  readonly sha256: string;
  readonly createdAt: Date;
  /** Time of the last upload. */
  readonly updatedAt: Date;
};

export type PutSound =
  | { readonly kind: 'created' | 'replaced'; readonly sound: StoredSound }
  | { readonly kind: 'full'; readonly message: string };

export type SoundStore = {
  put(accountId: string, name: string, mulaw: Uint8Array): Promise<PutSound>;
  /** Lists the account's sounds, sorted by name. */
  list(accountId: string): Promise<readonly StoredSound[]>;
  find(accountId: string, name: string): Promise<StoredSound | undefined>;
  /** @returns false if there's no such sound */
  remove(accountId: string, name: string): Promise<boolean>;
  /**
   * Returns the latest upload's version, or undefined if there's no such sound. Each upload creates
   * a new version.
   */
  version(accountId: string, name: string): Promise<string | undefined>;
  read(accountId: string, name: string): Promise<ReadSound | undefined>;
};

export type ReadSound = {
  readonly version: string;
  readonly sha256: string;
  readonly mulaw: Uint8Array;
};

export type SoundLimits = { readonly maxSounds: number; readonly maxBytes: number };

/** Limits per account. 500 MB correspond to about 17 hours of audio. */
export const soundLimits: SoundLimits = { maxSounds: 1_000, maxBytes: 500_000_000 };

const columns =
  'name, octet_length(mulaw) as bytes, sha256, created_at as "createdAt", updated_at as "updatedAt"';

/** Class of the advisory locks that protect accounts' sounds. */
const lockClass = 1_936_684_404;

/**
 * Stores a sound unless the account has reached its limits. If the upload replaces a sound, the old
 * sound doesn't count towards the limits.
 */
const putStatement = `
with others as (
  select count(*) as sounds, coalesce(sum(octet_length(mulaw)), 0) as bytes
  from sounds where account_id = $1 and name <> $2
)
insert into sounds (account_id, name, mulaw, version, created_at, updated_at)
select $1, $2, $3, $4, $5, $5 from others
where others.sounds < $6 and others.bytes + octet_length($3::bytea) <= $7
on conflict (account_id, name) do update
  set mulaw = excluded.mulaw, version = excluded.version, updated_at = excluded.updated_at
returning ${columns}, xmax = 0 as "isNew"`;

type SoundRow = Omit<StoredSound, 'durationMs'>;

export function createSoundStore(
  {
    database: { pool, reads },
    clock,
  }: { readonly database: Pick<Database, 'pool' | 'reads'>; readonly clock: Clock },
  limits: SoundLimits = soundLimits,
): SoundStore {
  return {
    put: (accountId, name, mulaw) =>
      inTransaction(pool, async (client) => {
        await lockSounds(client, accountId);
        const { rows } = await client.query<SoundRow & { isNew: boolean }>(putStatement, [
          ...[accountId, name, Buffer.from(mulaw.buffer, mulaw.byteOffset, mulaw.length)],
          ...[randomUUID(), clock.now(), limits.maxSounds, limits.maxBytes],
        ]);
        const [row] = rows;
        if (row === undefined) return { kind: 'full', message: limitMessage(limits) };
        const { isNew, ...sound } = row;
        return { kind: isNew ? 'created' : 'replaced', sound: toStoredSound(sound) };
      }),
    async list(accountId) {
      const { rows } = await reads(accountId).query<SoundRow>(
        `select ${columns} from sounds where account_id = $1 order by name collate "C"`,
        [accountId],
      );
      return rows.map(toStoredSound);
    },
    async find(accountId, name) {
      const { rows } = await reads(accountId).query<SoundRow>(
        `select ${columns} from sounds where account_id = $1 and name = $2`,
        [accountId, name],
      );
      return rows.map(toStoredSound)[0];
    },
    async remove(accountId, name) {
      const { rowCount } = await pool.query(
        'delete from sounds where account_id = $1 and name = $2',
        [accountId, name],
      );
      return rowCount === 1;
    },
    async version(accountId, name) {
      const { rows } = await pool.query<{ version: string }>(
        'select version from sounds where account_id = $1 and name = $2',
        [accountId, name],
      );
      return rows[0]?.version;
    },
    async read(accountId, name) {
      const { rows } = await pool.query<ReadSound>(
        'select version, sha256, mulaw from sounds where account_id = $1 and name = $2',
        [accountId, name],
      );
      return rows[0];
    },
  };
}

/**
 * Locks an account's sounds. Without the lock, two simultaneous uploads could together exceed the
 * limits.
 */
async function lockSounds(client: PoolClient, accountId: string): Promise<void> {
  await client.query('select pg_advisory_xact_lock($1, hashtext($2))', [lockClass, accountId]);
}

function toStoredSound(row: SoundRow): StoredSound {
  return { ...row, durationMs: row.bytes / 8 };
}

function limitMessage({ maxSounds, maxBytes }: SoundLimits): string {
  return `The account has reached its limit: ${maxSounds} sounds, or ${maxBytes / 1_000_000} MB in total.`;
}

/**
 * An account's sounds as its apps see them. Apps upload files, and the library converts them to the
 * format that calls play.
 */
export type SoundLibrary = Pick<SoundStore, 'list' | 'find' | 'remove'> & {
  /**
   * Converts and stores a file. If the file can't be read, `problem` describes what is wrong with
   * it.
   */
  put(
    accountId: string,
    name: string,
    file: Buffer,
  ): Promise<PutSound | { readonly kind: 'unreadable'; readonly problem: string }>;
};

export function createSoundLibrary(store: SoundStore, converter: Converter): SoundLibrary {
  return {
    list: (accountId) => store.list(accountId),
    find: (accountId, name) => store.find(accountId, name),
    remove: (accountId, name) => store.remove(accountId, name),
    async put(accountId, name, file) {
      const converted = await converter.convert(file);
      if (!converted.ok) return { kind: 'unreadable', problem: converted.problem };
      return await store.put(accountId, name, converted.mulaw);
    },
  };
}
