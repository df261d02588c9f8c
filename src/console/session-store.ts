// Stores sign-in links and sessions in the database, which contains only hashes of their tokens. A
// link is valid for one sign-in, on any node.

import { createHash, randomBytes } from 'node:crypto';
import type { Clock } from '../calls/ports.ts';
import type { Database } from '../store/database.ts';

/** This is long enough to switch to the browser. */
export const linkLifetimeMs = 60_000;
export const sessionLifetimeMs = 8 * 3_600_000;

/** Access to an app, granted by a link or a session. */
export type Grant = {
  readonly appId: string;
  /**
   * Ids of some of the app's credentials. The grant ends as soon as one of these credentials
   * becomes invalid.
   */
  readonly openedBy: readonly string[];
};

export type Session = Grant & { readonly expiresAt: Date };

export type SessionStore = {
  /** Creates a link and returns its token. */
  createLink(
    grant: Grant,
    lifetimeMs?: number,
  ): Promise<{ readonly token: string; readonly expiresAt: Date }>;
  /**
   * Finds a link without using it.
   *
   * @returns undefined if the link has been used, has expired, or never existed
   */
  findLink(token: string): Promise<Grant | undefined>;
  /**
   * Uses the link.
   *
   * @returns a new session with its secret, or undefined if the link has been used, has expired, or
   * never existed
   */
  redeem(token: string): Promise<(Session & { readonly secret: string }) | undefined>;
  find(secret: string): Promise<Session | undefined>;
  end(secret: string): Promise<void>;
};

type Columns = { readonly app_id: string; readonly opened_by: readonly string[] };

export function createSessionStore({ pool }: Pick<Database, 'pool'>, clock: Clock): SessionStore {
  const inFuture = (ms: number): Date => new Date(clock.now().getTime() + ms);
  return {
    async createLink({ appId, openedBy }, lifetimeMs = linkLifetimeMs) {
      const token = newSecret();
      const expiresAt = inFuture(lifetimeMs);
      // Used links are deleted at sign-in, so this only has to delete expired links.
      await pool.query('delete from console_links where expires_at < $1', [clock.now()]);
      await pool.query(
        'insert into console_links (token_hash, app_id, expires_at, opened_by) values ($1, $2, $3, $4)',
        [hashOf(token), appId, expiresAt, openedBy],
      );
      return { token, expiresAt };
    },
    async findLink(token) {
      const { rows } = await pool.query<Columns>(
        'select app_id, opened_by from console_links where token_hash = $1 and expires_at >= $2',
        [hashOf(token), clock.now()],
      );
      return rows[0] && grantOf(rows[0]);
    },
    async redeem(token) {
      const { rows } = await pool.query<Columns>(
        'delete from console_links where token_hash = $1 and expires_at >= $2 returning app_id, opened_by',
        [hashOf(token), clock.now()],
      );
      const [link] = rows;
      if (link === undefined) return undefined;
      const secret = newSecret();
      const expiresAt = inFuture(sessionLifetimeMs);
      await pool.query('delete from console_sessions where expires_at < $1', [clock.now()]);
      await pool.query(
        `insert into console_sessions (token_hash, app_id, created_at, expires_at, opened_by)
         values ($1, $2, $3, $4, $5)`,
        [hashOf(secret), link.app_id, clock.now(), expiresAt, link.opened_by],
      );
      return { ...grantOf(link), expiresAt, secret };
    },
    async find(secret) {
      const { rows } = await pool.query<Columns & { readonly expires_at: Date }>(
        'select app_id, opened_by, expires_at from console_sessions where token_hash = $1 and expires_at >= $2',
        [hashOf(secret), clock.now()],
      );
      const [session] = rows;
      return session && { ...grantOf(session), expiresAt: session.expires_at };
    },
    async end(secret) {
      await pool.query('delete from console_sessions where token_hash = $1', [hashOf(secret)]);
    },
  };
}

function grantOf({ app_id: appId, opened_by: openedBy }: Columns): Grant {
  return { appId, openedBy };
}

function newSecret(): string {
  return randomBytes(32).toString('base64url');
}

/** We don't need a salt, because the secret has 256 random bits. */
function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('base64url');
}
