// Stores the latest version of each published message, for a limited time.

import type { BatchConsumer } from '../../events/batch-consumer.ts';
import { type Ingested, startIngestConsumer } from '../../events/ingest.ts';
import type { Database } from '../../store/database.ts';
import { jsonRows, storableJson } from '../../store/json-rows.ts';
import { dataRefusal } from '../../store/sql-errors.ts';
import type { CompanionDependencies } from '../dependencies.ts';
import { defaultChannel, type PublishedMessage, publishedMessage } from './message-schema.ts';

/** If all messages have the maximum size, a batch takes 25 MiB. */
const maxBatch = 100;
/**
 * Limits the size of a message. We read pages in chunks of a thousand messages, and a chunk must
 * fit into memory even if all its messages have this size.
 */
const maxMessageLength = 64 * 1_024;

const excludedTaskTypes = new Set(['alert', 'action']);

const columns = `account_id text, bot_id text, message_id text, version bigint, created_on timestamptz, user_id text,
  session_id text, channel text, call_id text, is_task boolean, tags jsonb, document text, trace_id text, agent_info text,
  secure_form text`;
const names = columns.split(',').map((column) => column.trim().replace(/ .*/, ''));

// To prevent deadlocks, all nodes store rows in the same order.
const upsert = `
insert into messages (${names.join(', ')})
select ${names.join(', ')}
from json_to_recordset($1::json) as told (${columns})
order by account_id, bot_id, message_id
on conflict (account_id, bot_id, message_id) do update
  set (${names.join(', ')}) = (${names.map((name) => `excluded.${name}`).join(', ')})
  where messages.version < excluded.version`;

export function followMessages(
  dependencies: Pick<CompanionDependencies, 'database' | 'bots' | 'events' | 'logger'>,
): Promise<BatchConsumer> {
  const { database, bots, events, logger } = dependencies;
  return startIngestConsumer<PublishedMessage>(events, {
    kind: 'messages',
    schema: publishedMessage,
    ownerOf: (name) => bots.ownerOf(name),
    refuse: ({ body }) =>
      JSON.stringify(body).length <= maxMessageLength
        ? undefined
        : `larger than ${maxMessageLength} characters`,
    apply: (batch) => storeMessages(database, batch),
    refusalOf: dataRefusal,
    maxBatch,
    logger,
  });
}

/**
 * Stores a batch. Idempotent and independent of the order, because a message's latest version wins.
 */
export async function storeMessages(
  { pool }: Pick<Database, 'pool'>,
  batch: readonly Ingested<PublishedMessage>[],
): Promise<void> {
  // A statement can change a row only once, so we keep only each message's latest version.
  const latest = new Map<string, string>();
  for (const item of batch.toSorted((a, b) => a.version - b.version)) {
    const { accountId, botId } = item.bot;
    latest.set(JSON.stringify([accountId, botId, item.body._id]), storableJson(rowOf(item)));
  }
  await pool.query(upsert, [jsonRows([...latest.values()])]);
}

function rowOf({ bot, body, version }: Ingested<PublishedMessage>): object {
  const { taskType, callId, traceId, agentInfo, secureForm, ...documented } = body;
  const json = (value: unknown) => (value === undefined ? null : storableJson(value));
  return {
    account_id: bot.accountId,
    bot_id: bot.botId,
    message_id: body._id,
    version,
    created_on: body.createdOn,
    user_id: body.createdBy,
    session_id: body.sessionId,
    channel: body.channels[0]?.type ?? defaultChannel,
    call_id: callId ?? null,
    is_task: excludedTaskTypes.has(taskType?.toLowerCase() ?? ''),
    tags: body.tags ?? null,
    document: storableJson({ ...documented, botId: bot.botId }),
    trace_id: body.type === 'incoming' ? json(traceId) : null,
    agent_info: json(agentInfo),
    secure_form: json(secureForm),
  };
}
