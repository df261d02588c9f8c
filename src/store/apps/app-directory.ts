// Apps: who may call the API, for which account and bots, and what signs their tokens and notifications.

import type { AppLimits } from '../../calls/target/app-limits.ts';
import type { NumberReading } from '../../calls/target/number-reading.ts';

export const scopes = [
  'Dialout',
  'View Connections',
  'Manage Connections',
  'Contact Center Import and Export Feature',
  'Batch Tests Execution',
  'Chat History',
  'Bot Analytics > Chat History',
  'Contact Center Analytics',
  'Operate',
] as const;
export type Scope = (typeof scopes)[number];

/** Shared secrets, then public keys. */
export const jwtAlgorithms = ['HS256', 'HS384', 'HS512', 'RS256', 'ES256', 'EdDSA'] as const;
export type JwtAlgorithm = (typeof jwtAlgorithms)[number];

/** Has at most one of the two members of a reading, for requests that say nothing. */
export type App = NumberReading & {
  readonly appId: string;
  readonly accountId: string;
  readonly name: string;
  /** Bot ids, or `*`. */
  readonly bots: readonly string[];
  readonly scopes: readonly Scope[];
  readonly jwtAlgorithm: JwtAlgorithm;
  /** Those that are live, newest first: the shared secret, or a JWKS document where the algorithm has public keys. */
  readonly jwtKeys: readonly string[];
  /** Hashes of the API keys that are live, newest first. */
  readonly apiKeyIds: readonly string[];
  /** Those that are live, newest first. */
  readonly streamSecrets: readonly string[];
  readonly createdAt: Date;
  /** Left out: none. */
  readonly limits?: AppLimits;
  /** How long its tokens may live; left out: as long as they say. */
  readonly tokenMaxTtlS?: number;
};

export type AppDirectory = {
  /** Undefined: unknown or revoked. Cached for a few seconds; every request asks. */
  find(appId: string): Promise<App | undefined>;
  /** Likewise. */
  findByApiKey(apiKey: string): Promise<App | undefined>;
};
