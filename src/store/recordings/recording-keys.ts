// The public keys of accounts, for which recordings are encrypted.

import type { Queries } from '../queries.ts';
import { sql } from '../sql.ts';

export type WrapAlgorithm = 'RSA-OAEP-256' | 'X25519-HKDF-A256GCM';

export type RecordingKey = {
  readonly accountId: string;
  readonly name: string;
  readonly algorithm: WrapAlgorithm;
  readonly createdAt: string;
};

export type PublicKey = Pick<RecordingKey, 'algorithm'> & {
  /** SubjectPublicKeyInfo, PEM. */
  readonly publicKey: string;
};

/** What `requests` and bots call a key. */
export const keyNamePattern = /^[A-Za-z0-9_-]{1,64}$/;
/** A customer changes the key once a year at most. */
const maxKeys = 100;

export type RecordingKeys = {
  /** @returns `exists` if the account has a key of this name: a key is never replaced */
  add(accountId: string, name: string, key: PublicKey): Promise<'added' | 'exists' | 'too-many'>;
  list(accountId?: string): Promise<readonly RecordingKey[]>;
  find(accountId: string, name: string): Promise<PublicKey | undefined>;
  /** Recordings that are encrypted for the key stay readable for whoever has its private key. */
  remove(accountId: string, name: string): Promise<boolean>;
};

export function createRecordingKeys(pool: Queries, now: () => Date): RecordingKeys {
  return {
    async add(accountId, name, { algorithm, publicKey }) {
      const known = await pool.query<{ name: string }>(
        sql`select name from recording_keys where account_id = ${accountId}`,
      );
      if (known.rows.some((row) => row.name === name)) return 'exists';
      if (known.rows.length >= maxKeys) return 'too-many';
      const { rowCount } = await pool.query(
        sql`insert into recording_keys (account_id, name, public_key, algorithm, created_at)
          values (${accountId}, ${name}, ${publicKey}, ${algorithm}, ${now()}) on conflict do nothing`,
      );
      return rowCount === 1 ? 'added' : 'exists';
    },
    async list(accountId) {
      const { rows } = await pool.query<Omit<RecordingKey, 'createdAt'> & { createdAt: Date }>(
        sql`select account_id as "accountId", name, algorithm, created_at as "createdAt" from recording_keys
          where ${accountId ?? null}::text is null or account_id = ${accountId ?? null}
          order by account_id, name`,
      );
      return rows.map((row) => ({ ...row, createdAt: row.createdAt.toISOString() }));
    },
    async find(accountId, name) {
      const { rows } = await pool.query<PublicKey>(
        sql`select algorithm, public_key as "publicKey" from recording_keys
          where account_id = ${accountId} and name = ${name}`,
      );
      return rows[0];
    },
    async remove(accountId, name) {
      const { rowCount } = await pool.query(
        sql`delete from recording_keys where account_id = ${accountId} and name = ${name}`,
      );
      return rowCount === 1;
    },
  };
}
