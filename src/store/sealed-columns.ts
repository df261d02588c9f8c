// Where the database stores values that a SecretBox seals. `src/store/reencryption.ts` goes through
// all of them, and a test fills every table and fails if a sealed value is anywhere else.

import type { SecretPurpose } from './secrets.ts';

export type SealedColumn = {
  readonly purpose: SecretPurpose;
  readonly table: string;
  readonly column: string;
  /** The primary key, a text column. */
  readonly key: string;
  /** The column that identifies the row to which the ciphertext is bound. Default: `key`. */
  readonly boundTo?: string;
  /** The place within a JSON column, which holds the ciphertext as base64. */
  readonly path?: readonly string[];
  /**
   * For secrets without which an app's requests fail: a condition that is true while the secret is
   * in use. The gateway doesn't start if it can't open one of these.
   */
  readonly inUse?: string;
};

type Places = readonly Omit<SealedColumn, 'purpose'>[];

/** A record, so that a new purpose doesn't compile until it has a place. */
const places: Readonly<Record<SecretPurpose, Places>> = {
  'jwt-secret': [
    { table: 'apps', column: 'jwt_secret', key: 'app_id', inUse: 'revoked_at is null' },
    {
      ...{ table: 'apps', column: 'previous_jwt_secret', key: 'app_id' },
      inUse: 'revoked_at is null and previous_jwt_secret_until > now()',
    },
  ],
  'stream-secret': [
    { table: 'apps', column: 'stream_secret', key: 'app_id', inUse: 'revoked_at is null' },
    {
      ...{ table: 'apps', column: 'previous_stream_secret', key: 'app_id' },
      inUse: 'revoked_at is null and previous_stream_secret_until > now()',
    },
  ],
  'webhook-secret': [
    {
      ...{ table: 'webhook_secrets', column: 'secret', key: 'secret_id' },
      inUse: 'expires_at is null or expires_at > now()',
    },
  ],
  'stream-query': [
    { table: 'bots', column: 'stream_query', key: 'bot_id' },
    {
      ...{ table: 'calls', column: 'request', path: ['stream', 'sealedQuery'] },
      ...{ key: 'call_id', boundTo: 'bot_id' },
    },
  ],
  'notify-headers': [{ table: 'calls', column: 'notify_headers', key: 'call_id' }],
  connection: [{ table: 'connections', column: 'secrets', key: 'connection_id' }],
  // The spool has them, for the few hours until a lost node's recording is finished.
  'recording-key': [],
};

export const sealedColumns: readonly SealedColumn[] = Object.entries(places).flatMap(
  ([purpose, columns]) =>
    columns.map((column) => ({ ...column, purpose: purpose as SecretPurpose })),
);
