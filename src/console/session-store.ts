// Links that sign in, and sessions, in SQL: a link is good for one sign-in over all nodes. What is kept are hashes.

import { createHash, randomBytes } from 'node:crypto';
import type { Clock } from '../calls/ports.ts';
import type { Database } from '../store/database.ts';

/** Long enough to switch to the browser. */
export const linkLifetimeMs = 60_000;
export const sessionLifetimeMs = 8 * 3_600_000;

export type Session = { readonly appId: string; readonly expiresAt: Date };

export type SessionStore = {
  /** The token of a new link. */
  createLink(appId: string): Promise<{ readonly token: string; readonly expiresAt: Date }>;
  /** The secret of a new session; undefined: the link was used, is too old, or was never made. */
  redeem(token: string): Promise<(Session & { readonly secret: string }) | undefined>;
  find(secret: string): Promise<Session | undefined>;
  end(secret: string): Promise<void>;
};

export function createSessionStore({ pool }: Pick<Database, 'pool'>, clock: Clock): SessionStore {
  const inFuture = (ms: number): Date => new Date(clock.now().getTime() + ms);
  return {
    async createLink(appId) {
      const token = newSecret();
      const expiresAt = inFuture(linkLifetimeMs);
      // A link that was not used goes with the next one.
      await pool.query('delete from console_links where expires_at < $1', [clock.now()]);
      await pool.query(
        'insert into console_links (token_hash, app_id, expires_at) values ($1, $2, $3)',
        [hashOf(token), appId, expiresAt],
      );
      return { token, expiresAt };
    },
    async redeem(token) {
      const { rows } = await pool.query<{ app_id: string }>(
        'delete from console_links where token_hash = $1 and expires_at >= $2 returning app_id',
        [hashOf(token), clock.now()],
      );
      const [link] = rows;
      if (link === undefined) return undefined;
      const secret = newSecret();
      const expiresAt = inFuture(sessionLifetimeMs);
      await pool.query('delete from console_sessions where expires_at < $1', [clock.now()]);
      await pool.query(
        'insert into console_sessions (token_hash, app_id, created_at, expires_at) values ($1, $2, $3, $4)',
        [hashOf(secret), link.app_id, clock.now(), expiresAt],
      );
      return { appId: link.app_id, expiresAt, secret };
    },
    async find(secret) {
      const { rows } = await pool.query<{ app_id: string; expires_at: Date }>(
        'select app_id, expires_at from console_sessions where token_hash = $1 and expires_at >= $2',
        [hashOf(secret), clock.now()],
      );
      const [session] = rows;
      return session && { appId: session.app_id, expiresAt: session.expires_at };
    },
    async end(secret) {
      await pool.query('delete from console_sessions where token_hash = $1', [hashOf(secret)]);
    },
  };
}

function newSecret(): string {
  return randomBytes(32).toString('base64url');
}

/** Of 256 random bits: no salt makes them harder to guess. */
function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('base64url');
}
