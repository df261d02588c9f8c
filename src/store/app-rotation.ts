// A credential is replaced while the one before it lives on for a grace time, so that whoever uses it can change over. At most
// two of a kind are live: a rotation within that time would end the oldest at once, which somebody may still use. It must be forced.

import { randomUUID } from 'node:crypto';
import { and, eq, gt, isNull } from 'drizzle-orm';
import type { Clock } from '../calls/ports.ts';
import {
  hashApiKey,
  newApiKey,
  newJwtSecret,
  newWebhookSecret,
  type RotatableCredential,
} from './app-credentials.ts';
import type { JwtAlgorithm } from './app-directory.ts';
import type { Database } from './database.ts';
import { isPublicKeyAlgorithm, parsePublicKeys } from './jwt-keys.ts';
import { apps, webhookSecrets } from './schema.ts';
import type { SecretBox } from './secrets.ts';

export type Rotation = {
  readonly what: RotatableCredential;
  /** How long the former one is still taken, or signed with; 0 ends it at once. */
  readonly graceS: number;
  /** PEM, JWK or JWKS: for `jwt`, where the app signs with a private key of its own. */
  readonly publicKeys?: string;
  /** Also where the one before the present one is still in its grace time: it ends now. */
  readonly force?: boolean;
};

export type Rotated = {
  readonly appId: string;
  /** The new credential, told once; none where the app brought its own key. */
  readonly apiKey?: string;
  readonly jwtSecret?: string;
  readonly webhookSecret?: string;
  readonly previousUntil: Date;
};

export type RotationResult =
  | { readonly kind: 'rotated'; readonly rotated: Rotated }
  /** Or revoked. */
  | { readonly kind: 'unknown' }
  /** What was given does not fit the app. */
  | { readonly kind: 'refused'; readonly message: string }
  /** Two are live already, the older one until then. */
  | { readonly kind: 'in-grace'; readonly until: Date };

type Dependencies = {
  readonly database: Pick<Database, 'db'>;
  readonly secrets: SecretBox;
  readonly clock: Clock;
};
type AppRow = typeof apps.$inferSelect;
type Transaction = Parameters<Parameters<Database['db']['transaction']>[0]>[0];
type Step = Dependencies & {
  readonly transaction: Transaction;
  readonly app: AppRow;
  readonly until: Date;
};

export async function rotate(
  dependencies: Dependencies,
  appId: string,
  { what, graceS, publicKeys, force = false }: Rotation,
): Promise<RotationResult> {
  const now = dependencies.clock.now();
  const until = new Date(now.getTime() + graceS * 1_000);
  return await dependencies.database.db.transaction(async (transaction) => {
    // Two rotations at once would both leave a secret without an end: the second one waits here.
    const [app] = await transaction
      .select()
      .from(apps)
      .where(and(eq(apps.appId, appId), isNull(apps.revokedAt)))
      .for('update');
    if (app === undefined) return { kind: 'unknown' };
    const jwt = what === 'jwt' ? newJwtKey(app, publicKeys) : undefined;
    if (jwt?.ok === false) return { kind: 'refused', message: jwt.message };
    const graceUntil = force ? undefined : await graceEnd(transaction, app, what, now);
    if (graceUntil !== undefined) return { kind: 'in-grace', until: graceUntil };

    const made = await replace(what, { ...dependencies, transaction, app, until }, jwt);
    return { kind: 'rotated', rotated: { appId, ...made, previousUntil: until } };
  });
}

async function replace(
  what: RotatableCredential,
  step: Step,
  jwt: Extract<NewJwtKey, { ok: true }> | undefined,
) {
  if (jwt !== undefined) return await rotateJwt(step, jwt.key, jwt.told);
  return what === 'api-key' ? await rotateApiKey(step) : await rotateWebhookSecret(step);
}

/** Of the credential before the present one; undefined: none is live. */
async function graceEnd(
  transaction: Transaction,
  app: AppRow,
  what: RotatableCredential,
  now: Date,
): Promise<Date | undefined> {
  const until =
    what === 'webhook-secret'
      ? await formerWebhookSecretUntil(transaction, app.appId, now)
      : what === 'jwt'
        ? app.previousJwtSecretUntil
        : app.previousApiKeyUntil;
  return until != null && until > now ? until : undefined;
}

async function formerWebhookSecretUntil(
  transaction: Transaction,
  appId: string,
  now: Date,
): Promise<Date | null | undefined> {
  const [former] = await transaction
    .select({ until: webhookSecrets.expiresAt })
    .from(webhookSecrets)
    .where(and(eq(webhookSecrets.appId, appId), gt(webhookSecrets.expiresAt, now)));
  return former?.until;
}

type NewJwtKey =
  | { readonly ok: true; readonly key: string; readonly told: { readonly jwtSecret?: string } }
  | { readonly ok: false; readonly message: string };

function newJwtKey({ jwtAlgorithm }: AppRow, publicKeys: string | undefined): NewJwtKey {
  const algorithm = jwtAlgorithm as JwtAlgorithm;
  if (!isPublicKeyAlgorithm(algorithm)) {
    if (publicKeys !== undefined) {
      return { ok: false, message: `the app signs with ${algorithm}: it has no public key` };
    }
    const jwtSecret = newJwtSecret();
    return { ok: true, key: jwtSecret, told: { jwtSecret } };
  }
  if (publicKeys === undefined) {
    return { ok: false, message: `the app signs with ${algorithm}: give its new public key` };
  }
  const parsed = parsePublicKeys(publicKeys, algorithm);
  return parsed.ok
    ? { ok: true, key: parsed.jwks, told: {} }
    : { ok: false, message: `the public key ${parsed.message}` };
}

async function rotateJwt({ transaction, app, until, secrets }: Step, key: string, told: object) {
  await transaction
    .update(apps)
    .set({
      jwtSecret: secrets.seal('jwt-secret', app.appId, key),
      previousJwtSecret: app.jwtSecret,
      previousJwtSecretUntil: until,
    })
    .where(eq(apps.appId, app.appId));
  return told;
}

async function rotateApiKey({ transaction, app, until }: Step) {
  const apiKey = newApiKey();
  await transaction
    .update(apps)
    .set({
      apiKeyHash: hashApiKey(apiKey),
      previousApiKeyHash: app.apiKeyHash,
      previousApiKeyUntil: until,
    })
    .where(eq(apps.appId, app.appId));
  return { apiKey };
}

async function rotateWebhookSecret({ transaction, app, until, secrets, clock }: Step) {
  const { appId } = app;
  const now = clock.now();
  const ofApp = eq(webhookSecrets.appId, appId);
  await transaction
    .update(webhookSecrets)
    .set({ expiresAt: now })
    .where(and(ofApp, gt(webhookSecrets.expiresAt, now)));
  await transaction
    .update(webhookSecrets)
    .set({ expiresAt: until })
    .where(and(ofApp, isNull(webhookSecrets.expiresAt)));
  const webhookSecret = newWebhookSecret();
  const secretId = `whs-${randomUUID()}`;
  const secret = secrets.seal('webhook-secret', secretId, webhookSecret);
  await transaction.insert(webhookSecrets).values({ secretId, appId, secret, createdAt: now });
  return { webhookSecret };
}
