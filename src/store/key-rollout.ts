// While SECRETS_KEY changes, gateways with the new key run beside gateways that don't have it yet.
// Each gateway announces its keys in its row of `nodes`. It seals new values with the previous key
// until every gateway has the current one, so that no gateway meets a value that it can't open.

import type { Logger } from '../lib/logger.ts';
import { type Repetition, repeat } from '../lib/repeat.ts';
import type { Queries } from './queries.ts';
import { keyIdIn, type SecretBox } from './secrets.ts';

/** Nobody waits for the change, so it may take a few seconds to be noticed. */
const checkEveryMs = 3_000;

export type KeyRollout = {
  /** The ids of the nodes that don't have the current key. */
  readonly without: readonly string[];
  /** The ids of the nodes that may still seal with another key. Includes `without`. */
  readonly notUsing: readonly string[];
};

/**
 * For an hour, a lost node counts unless a newer process has its id, because it may come back with
 * its old configuration.
 */
export async function readRollout(pool: Queries, { headers }: SecretBox): Promise<KeyRollout> {
  const { rows } = await pool.query<{ node_id: string; has_key: boolean }>(
    `select node_id, bool_and($1 = any(secret_keys)) as has_key from nodes n
     where secret_keys[1] is distinct from $1
       and (lost_at is null or lost_at > now() - interval '1 hour')
       and not exists (
         select from nodes newer where newer.node_id = n.node_id and newer.started_at > n.started_at)
     group by node_id order by node_id`,
    [keyIdIn(headers.current)],
  );
  return {
    without: rows.filter(({ has_key: hasKey }) => !hasKey).map((row) => row.node_id),
    notUsing: rows.map((row) => row.node_id),
  };
}

/** Switches the box to its current key if every node has that key. */
export async function useCurrentKeyIfShared(pool: Queries, secrets: SecretBox): Promise<boolean> {
  const isShared = (await readRollout(pool, secrets)).without.length === 0;
  if (isShared) secrets.useCurrentKey();
  return isShared;
}

/**
 * Announces the keys with which this process opens secrets. The first is the one with which it
 * seals. Call this after the node is registered.
 */
export async function announceKeys(
  pool: Queries,
  ownerId: string,
  secrets: SecretBox,
): Promise<void> {
  const keyIds = [secrets.sealsWith(), ...Object.values(secrets.headers)].map(keyIdIn);
  await pool.query('update nodes set secret_keys = $2 where owner_id = $1', [
    ownerId,
    [...new Set(keyIds)],
  ]);
}

/** Uses the current key as soon as every node has it, and announces that. */
export function followRollout(
  pool: Queries,
  ownerId: string,
  secrets: SecretBox,
  logger: Logger,
): Repetition {
  let state: 'waiting' | 'switched' | 'announced' = 'waiting';
  return repeat({ name: 'key change', everyMs: checkEveryMs, logger }, async () => {
    if (state === 'waiting') {
      if (!(await useCurrentKeyIfShared(pool, secrets))) return;
      state = 'switched';
      logger.info('every gateway has SECRETS_KEY: new secrets are sealed with it');
    } else if (state === 'switched') {
      // By now, the values that were sealed before the switch are stored. `offhook secrets
      // reencrypt` relies on that.
      await announceKeys(pool, ownerId, secrets);
      state = 'announced';
    }
  });
}
