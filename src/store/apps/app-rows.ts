// A row of `apps` as `pg` returns it, and its conversion to an app.

import type { AppLimits } from '../../calls/target/app-limits.ts';
import type { BareNumberReading, NumberReading } from '../../calls/target/number-reading.ts';
import { type App, scopes as allScopes } from './app-directory.ts';

export type AppColumns = {
  readonly app_id: string;
  readonly account_id: string;
  readonly name: string;
  /** Bot ids, or `*` for every bot of the account. */
  readonly bots: readonly string[];
  readonly scopes: readonly string[];
  /** The only algorithm that this app's tokens may be signed with. */
  readonly jwt_algorithm: App['jwtAlgorithm'];
  /**
   * The shared secret, or the JWKS document, that verifies the app's tokens. Encrypted with
   * SECRETS_KEY. We encrypt public keys too, so that an attacker who can write to this table can't
   * plant a key.
   */
  readonly jwt_secret: Buffer;
  /** SHA-256 of the API key. The key is random and long, so a slow hash would add nothing. */
  readonly api_key_hash: string;
  readonly created_at: Date;
  readonly revoked_at: Date | null;
  /** The credential before the last rotation, and when it expires. */
  readonly previous_jwt_secret: Buffer | null;
  readonly previous_jwt_secret_until: Date | null;
  readonly previous_api_key_hash: string | null;
  readonly previous_api_key_until: Date | null;
  /** Signs the upgrade request to a bot. Encrypted. */
  readonly stream_secret: Buffer;
  readonly previous_stream_secret: Buffer | null;
  readonly previous_stream_secret_until: Date | null;
  /** Null if the app has no limits. */
  readonly limits: AppLimits | null;
  /** Null if only the token itself limits how long it lives. */
  readonly token_max_ttl_s: number | null;
  /**
   * How numbers without `+` are read if the request doesn't say. At least one of the two columns is
   * null.
   */
  readonly default_country: string | null;
  readonly bare_numbers: BareNumberReading | null;
};

export function readingOf({
  default_country: country,
  bare_numbers: reading,
}: Pick<AppColumns, 'default_country' | 'bare_numbers'>): NumberReading {
  return {
    ...(country === null ? {} : { defaultCountry: country }),
    ...(reading === null ? {} : { bareNumbers: reading }),
  };
}

export function toApp(row: AppColumns): Omit<App, 'jwtKeys' | 'apiKeyIds' | 'streamSecrets'> {
  return {
    appId: row.app_id,
    accountId: row.account_id,
    name: row.name,
    bots: row.bots,
    scopes: allScopes.filter((scope) => row.scopes.includes(scope)),
    jwtAlgorithm: row.jwt_algorithm,
    createdAt: row.created_at,
    ...(row.limits === null ? {} : { limits: row.limits }),
    ...(row.token_max_ttl_s === null ? {} : { tokenMaxTtlS: row.token_max_ttl_s }),
    ...readingOf(row),
  };
}

/** Returns the valid key ids, newest first. */
export function validApiKeyIds(row: AppColumns, now: Date): readonly string[] {
  const { api_key_hash: present, previous_api_key_hash: previous } = row;
  const until = row.previous_api_key_until;
  const isPreviousLive = until !== null && until > now;
  return isPreviousLive && previous !== null ? [present, previous] : [present];
}

/** Returns the valid secrets, newest first, still encrypted. */
export function validStreamSecrets(row: AppColumns, now: Date): readonly Buffer[] {
  const { stream_secret: present, previous_stream_secret: previous } = row;
  const until = row.previous_stream_secret_until;
  const isPreviousLive = previous !== null && until !== null && until > now;
  return isPreviousLive ? [present, previous] : [present];
}
