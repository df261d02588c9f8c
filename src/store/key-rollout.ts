// While SECRETS_KEY changes, gateways with the new key run beside gateways that don't have it yet.
// Each gateway announces its keys in its row of `nodes`. It seals new values with the previous key
// until every gateway has the current one, so that no gateway meets a value that it can't open.

import type { Logger } from '../lib/logger.ts';
import { type Repetition, repeat } from '../lib/repeat.ts';
import type { Queries } from './queries.ts';
import { keyIdIn, type SecretBox } from './secrets.ts';

/** Nobody waits for the change, so it may take a few seconds to be noticed. */
const checkEveryMs = 5_000;

/**
 * Returns the ids of nodes that don't have the current key. For an hour, a lost node counts unless
 * a newer process has its id, because it may come back with its old configuration.
 */
export async function nodesWithoutKey(pool: Queries, { headers }: SecretBox): Promise<string[]> {
  const { rows } = await pool.query<{ node_id: string }>(
    `select distinct node_id from nodes n
     where not ($1 = any(secret_keys)) and (lost_at is null or lost_at > now() - interval '1 hour')
       and not exists (
       select from nodes newer where newer.node_id = n.node_id and newer.started_at > n.started_at)
     order by node_id`,
    [keyIdIn(headers.current)],
  );
  return rows.map((row) => row.node_id);
}

/** Switches the box to its current key if every node has that key. */
export async function useCurrentKeyIfShared(pool: Queries, secrets: SecretBox): Promise<boolean> {
  const isShared = (await nodesWithoutKey(pool, secrets)).length === 0;
  if (isShared) secrets.useCurrentKey();
  return isShared;
}

/** Announces this process's keys. Call it after the node is registered. */
export async function announceKeys(
  pool: Queries,
  ownerId: string,
  { headers }: SecretBox,
): Promise<void> {
  const keyIds = Object.values(headers).map(keyIdIn);
  await pool.query('update nodes set secret_keys = $2 where owner_id = $1', [ownerId, keyIds]);
}

/** Uses the current key as soon as every node has it. */
export function followRollout(pool: Queries, secrets: SecretBox, logger: Logger): Repetition {
  let isDone = false;
  return repeat({ name: 'key change', everyMs: checkEveryMs, logger }, async () => {
    if (isDone) return;
    isDone = await useCurrentKeyIfShared(pool, secrets);
    if (isDone) logger.info('every gateway has SECRETS_KEY: new secrets are sealed with it');
  });
}
