// The apps that may call the API, their accounts and bots, and the keys for their tokens and
// notifications.

import type { AppLimits } from '../../calls/target/app-limits.ts';
import type { NumberReading } from '../../calls/target/number-reading.ts';

export const scopes = [
  'Dialout',
  'Calling Rules',
  'View Connections',
  'Manage Connections',
  'Contact Center Import and Export Feature',
  'Batch Tests Execution',
  'Chat History',
  'Bot Analytics > Chat History',
  'Contact Center Analytics',
  'Operate',
  'Recordings',
] as const;
export type Scope = (typeof scopes)[number];

/** The shared-secret algorithms, followed by the public-key algorithms. */
export const jwtAlgorithms = ['HS256', 'HS384', 'HS512', 'RS256', 'ES256', 'EdDSA'] as const;
export type JwtAlgorithm = (typeof jwtAlgorithms)[number];

/**
 * An app sets at most one of the two fields of `NumberReading`. It applies to requests that don't
 * set their own reading.
 */
export type App = NumberReading & {
  readonly appId: string;
  readonly accountId: string;
  readonly name: string;
  /** Bot ids, or `*`. */
  readonly bots: readonly string[];
  readonly scopes: readonly Scope[];
  readonly jwtAlgorithm: JwtAlgorithm;
  /**
   * The valid keys, newest first. They are shared secrets, or JWKS documents if the algorithm uses
   * public keys.
   */
  readonly jwtKeys: readonly string[];
  /** The hashes of the valid API keys, newest first. */
  readonly apiKeyIds: readonly string[];
  /** The valid stream secrets, newest first. */
  readonly streamSecrets: readonly string[];
  readonly createdAt: Date;
  /** Default: no limits. */
  readonly limits?: AppLimits;
  /** Maximum lifetime of a token. Default: only the token itself limits it. */
  readonly tokenMaxTtlS?: number;
};

export type AppDirectory = {
  /**
   * Finds an app. Results are cached for a few seconds because every request asks.
   *
   * @returns undefined if the app is unknown or revoked
   */
  find(appId: string): Promise<App | undefined>;
  /** Like `find`, but by API key. */
  findByApiKey(apiKey: string): Promise<App | undefined>;
};
