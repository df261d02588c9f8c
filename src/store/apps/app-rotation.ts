// Replaces a credential. The previous credential stays valid for a grace period so that clients can
// switch. At most two credentials of each kind are valid at any time. A second rotation within the
// grace period must be forced, because it immediately invalidates the oldest credential, which a
// client may still be using.

import { randomUUID } from 'node:crypto';
import type { PoolClient } from 'pg';
import type { Clock } from '../../calls/ports.ts';
import type { Database } from '../database.ts';
import type { SecretBox } from '../secrets.ts';
import { inTransaction } from '../transaction.ts';
import {
  hashApiKey,
  newApiKey,
  newJwtSecret,
  newStreamSecret,
  newWebhookSecret,
  type RotatableCredential,
} from './app-credentials.ts';
import type { AppColumns } from './app-rows.ts';
import { isPublicKeyAlgorithm, parsePublicKeys } from './jwt-keys.ts';

export type Rotation = {
  readonly what: RotatableCredential;
  /**
   * How long the previous credential is still accepted, or used for signing. 0 invalidates it
   * immediately.
   */
  readonly graceS: number;
  /**
   * The new public keys for `jwt` as PEM, JWK or JWKS, if the app signs with its own private key.
   */
  readonly publicKeys?: string;
  /**
   * Rotates even if the previous credential is still in its grace period. The previous credential
   * then becomes invalid immediately.
   */
  readonly force?: boolean;
};

export type Rotated = {
  readonly appId: string;
  /**
   * The new credential, which is only shown once. None of these fields is set if the app uses its
   * own key.
   */
  readonly apiKey?: string;
  readonly jwtSecret?: string;
  readonly webhookSecret?: string;
  readonly streamSecret?: string;
  readonly previousUntil: Date;
};

export type RotationResult =
  | { readonly kind: 'rotated'; readonly rotated: Rotated }
  /** The app is unknown or revoked. */
  | { readonly kind: 'unknown' }
  /** The given key doesn't suit the app. */
  | { readonly kind: 'refused'; readonly message: string }
  /** Two credentials are already valid, the older of which expires at this time. */
  | { readonly kind: 'in-grace'; readonly until: Date };

export type RotationDependencies = {
  readonly database: Pick<Database, 'pool'>;
  readonly secrets: SecretBox;
  readonly clock: Clock;
};
type Step = RotationDependencies & {
  readonly client: PoolClient;
  readonly app: AppColumns;
  readonly until: Date;
};

export const insertWebhookSecret =
  'insert into webhook_secrets (secret_id, app_id, secret, created_at) values ($1, $2, $3, $4)';

export async function rotate(
  dependencies: RotationDependencies,
  appId: string,
  { what, graceS, publicKeys, force = false }: Rotation,
): Promise<RotationResult> {
  const now = dependencies.clock.now();
  const until = new Date(now.getTime() + graceS * 1_000);
  return await inTransaction(dependencies.database.pool, async (client) => {
    // Two simultaneous rotations would leave behind a secret that never expires. `for update` makes
    // the second rotation wait.
    const { rows } = await client.query<AppColumns>(
      'select * from apps where app_id = $1 and revoked_at is null for update',
      [appId],
    );
    const [app] = rows;
    if (app === undefined) return { kind: 'unknown' };
    const jwt = what === 'jwt' ? newJwtKey(app, publicKeys) : undefined;
    if (jwt?.ok === false) return { kind: 'refused', message: jwt.message };
    const graceUntil = force ? undefined : await graceEnd(client, app, what, now);
    if (graceUntil !== undefined) return { kind: 'in-grace', until: graceUntil };

    const made = await replace(what, { ...dependencies, client, app, until }, jwt);
    return { kind: 'rotated', rotated: { appId, ...made, previousUntil: until } };
  });
}

async function replace(
  what: RotatableCredential,
  step: Step,
  jwt: Extract<NewJwtKey, { ok: true }> | undefined,
) {
  if (jwt !== undefined) return await rotateJwt(step, jwt.key, jwt.shown);
  if (what === 'stream') return await rotateStreamSecret(step);
  return what === 'api-key' ? await rotateApiKey(step) : await rotateWebhookSecret(step);
}

const formerUntil = {
  jwt: 'previous_jwt_secret_until',
  stream: 'previous_stream_secret_until',
  'api-key': 'previous_api_key_until',
} as const;

/**
 * Returns when the previous credential expires.
 *
 * @returns undefined if no previous credential is valid
 */
async function graceEnd(
  client: PoolClient,
  app: AppColumns,
  what: RotatableCredential,
  now: Date,
): Promise<Date | undefined> {
  const until =
    what === 'webhook-secret'
      ? await formerWebhookSecretUntil(client, app.app_id, now)
      : app[formerUntil[what]];
  return until != null && until > now ? until : undefined;
}

async function formerWebhookSecretUntil(
  client: PoolClient,
  appId: string,
  now: Date,
): Promise<Date | undefined> {
  const { rows } = await client.query<{ expires_at: Date }>(
    'select expires_at from webhook_secrets where app_id = $1 and expires_at > $2',
    [appId, now],
  );
  return rows[0]?.expires_at;
}

type NewJwtKey =
  | { readonly ok: true; readonly key: string; readonly shown: { readonly jwtSecret?: string } }
  | { readonly ok: false; readonly message: string };

function newJwtKey(
  { jwt_algorithm: algorithm }: AppColumns,
  publicKeys: string | undefined,
): NewJwtKey {
  if (!isPublicKeyAlgorithm(algorithm)) {
    if (publicKeys !== undefined) {
      return { ok: false, message: `the app signs with ${algorithm}: it has no public key` };
    }
    const jwtSecret = newJwtSecret();
    return { ok: true, key: jwtSecret, shown: { jwtSecret } };
  }
  if (publicKeys === undefined) {
    return { ok: false, message: `the app signs with ${algorithm}: give its new public key` };
  }
  const parsed = parsePublicKeys(publicKeys, algorithm);
  return parsed.ok
    ? { ok: true, key: parsed.jwks, shown: {} }
    : { ok: false, message: `the public key ${parsed.message}` };
}

async function rotateJwt({ client, app, until, secrets }: Step, key: string, shown: object) {
  await client.query(
    `update apps set previous_jwt_secret = jwt_secret, previous_jwt_secret_until = $2, jwt_secret = $3
     where app_id = $1`,
    [app.app_id, until, secrets.seal('jwt-secret', app.app_id, key)],
  );
  return shown;
}

async function rotateApiKey({ client, app, until }: Step) {
  const apiKey = newApiKey();
  await client.query(
    `update apps set previous_api_key_hash = api_key_hash, previous_api_key_until = $2, api_key_hash = $3
     where app_id = $1`,
    [app.app_id, until, hashApiKey(apiKey)],
  );
  return { apiKey };
}

async function rotateStreamSecret({ client, app, until, secrets }: Step) {
  const streamSecret = newStreamSecret();
  await client.query(
    `update apps set previous_stream_secret = stream_secret, previous_stream_secret_until = $2,
       stream_secret = $3
     where app_id = $1`,
    [app.app_id, until, secrets.seal('stream-secret', app.app_id, streamSecret)],
  );
  return { streamSecret };
}

async function rotateWebhookSecret({ client, app, until, secrets, clock }: Step) {
  const { app_id: appId } = app;
  const now = clock.now();
  // The current secret expires after its grace period. If there's an older secret, it expires now.
  await client.query(
    `update webhook_secrets set expires_at = case when expires_at is null then $3 else $2::timestamptz end
     where app_id = $1 and (expires_at is null or expires_at > $2)`,
    [appId, now, until],
  );
  const webhookSecret = newWebhookSecret();
  const secretId = `whs-${randomUUID()}`;
  const secret = secrets.seal('webhook-secret', secretId, webhookSecret);
  await client.query(insertWebhookSecret, [secretId, appId, secret, now]);
  return { webhookSecret };
}
