// Apps: who may call the API, for which account and bots, and what signs their tokens and notifications.

export const scopes = [
  'Dialout',
  'View Connections',
  'Manage Connections',
  'Contact Center Import and Export Feature',
  'Batch Tests Execution',
  'Chat History',
  'Bot Analytics > Chat History',
  'Contact Center Analytics',
] as const;
export type Scope = (typeof scopes)[number];

export type App = {
  readonly appId: string;
  readonly accountId: string;
  readonly name: string;
  /** Bot ids, or `*`. */
  readonly bots: readonly string[];
  readonly scopes: readonly Scope[];
  readonly jwtAlgorithm: 'HS256' | 'HS384' | 'HS512';
  readonly jwtSecret: string;
  readonly createdAt: Date;
};

export type AppDirectory = {
  /** Undefined: unknown or revoked. Cached for a few seconds; every request asks. */
  find(appId: string): Promise<App | undefined>;
};
