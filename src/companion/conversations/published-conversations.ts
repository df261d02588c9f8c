// Stores the conversations that the contact center publishes, and reads them by session.

import { z } from 'zod';
import type { BatchConsumer } from '../../events/batch-consumer.ts';
import { type BotOwner, type Ingested, startIngestConsumer } from '../../events/ingest.ts';
import type { Database } from '../../store/database.ts';
import { jsonRows } from '../../store/json-rows.ts';
import { dataRefusal } from '../../store/sql-errors.ts';
import type { CompanionDependencies } from '../dependencies.ts';
import {
  type ConversationSession,
  type PublishedConversation,
  publishedConversation,
} from './conversation-schema.ts';

/** A conversation and its period. */
export type FoundConversation = { readonly session: ConversationSession; readonly period: Period };

const upsert = `
insert into conversations (account_id, bot_id, session_id, version, document)
select account_id, bot_id, session_id, version, document
from json_to_recordset($1::json)
  as told (account_id text, bot_id text, session_id text, version bigint, document jsonb)
on conflict (account_id, bot_id, session_id)
  do update set version = excluded.version, document = excluded.document
  where conversations.version < excluded.version`;

/** Most sessions take a few kilobytes. A batch of the largest possible sessions takes 25 MiB. */
const maxBatch = 100;

export function followConversations(
  dependencies: Pick<CompanionDependencies, 'database' | 'bots' | 'events' | 'logger'>,
): Promise<BatchConsumer> {
  const { database, bots, events, logger } = dependencies;
  return startIngestConsumer<PublishedConversation>(events, {
    kind: 'conversations',
    schema: publishedConversation,
    ownerOf: (name) => bots.ownerOf(name),
    refuse: ({ bot, body }) =>
      body.accountId === bot.accountId ? undefined : 'the bot is registered for another account',
    apply: (batch) => storeConversations(database, batch),
    refusalOf: dataRefusal,
    maxBatch,
    logger,
  });
}

/**
 * Stores a batch. Idempotent and independent of the order, because a session's latest version wins.
 */
export async function storeConversations(
  { pool }: Pick<Database, 'pool'>,
  batch: readonly Ingested<PublishedConversation>[],
): Promise<void> {
  // A statement can change a row only once, so we keep only each session's latest version. To
  // prevent deadlocks, all nodes store rows in the same order.
  const latest = new Map<string, string>();
  for (const { bot, body, version } of batch.toSorted((a, b) => a.version - b.version)) {
    const { sessionId, accountId: _accountOfBot, ...document } = body;
    const key = { account_id: bot.accountId, bot_id: bot.botId, session_id: sessionId };
    latest.set(JSON.stringify(key), JSON.stringify({ ...key, version, document }));
  }
  const rows = [...latest.keys()].toSorted().map((key) => latest.get(key) ?? '');
  await pool.query(upsert, [jsonRows(rows)]);
}

export async function findPublished(
  { reads }: Pick<Database, 'reads'>,
  { accountId, botId }: BotOwner,
  sessionId: string,
): Promise<FoundConversation | undefined> {
  // The document was checked against the schema when it arrived.
  const { rows } = await reads(accountId).query<{ version: string; document: ConversationSession }>(
    `select version, document from conversations
     where account_id = $1 and bot_id = $2 and session_id = $3`,
    [accountId, botId, sessionId],
  );
  const [row] = rows;
  if (row === undefined) return undefined;
  // The version is in microseconds since 1970.
  const publishedAt = new Date(Number(row.version) / 1_000);
  return { session: row.document, period: periodOf(row.document, publishedAt) };
}

/**
 * Returns the period from the first timestamp to the last. If a session doesn't contain any
 * timestamps, we use the time at which it was published.
 */
function periodOf(session: ConversationSession, publishedAt: Date): Period {
  const times = [
    ...session.participants.flatMap((one) => [
      one.queueStartTime,
      one.assignedAt,
      one.startTimeStamp,
      one.endTimeStamp,
    ]),
    ...session.transferDetails.map((one) => one.transferredAt),
  ].flatMap((time) => (time === undefined ? [] : [Date.parse(time)]));
  const known = times.length === 0 ? [publishedAt.getTime()] : times;
  return {
    from: new Date(Math.min(...known)),
    ...(session.status === 'CLOSED' ? { to: new Date(Math.max(...known)) } : {}),
  };
}

/** `to` is undefined while the conversation is still going on. */
type Period = { readonly from: Date; readonly to?: Date };

const day = z.iso.date({ error: 'must be a date, YYYY-MM-DD' });
const offset = (number: z.ZodNumber | z.ZodCoercedNumber) => number.int().min(-840).max(720);

function members(number: z.ZodNumber | z.ZodCoercedNumber) {
  return {
    startDate: day.exactOptional().describe('the first day; default: no lower bound'),
    endDate: day.exactOptional().describe('the last day; default: no upper bound'),
    timeZoneOffset: offset(number)
      .exactOptional()
      .describe(
        'minutes from local time to UTC, negative if local time is ahead of UTC; default: UTC',
      ),
  };
}

/** Strict, because a misspelled bound would silently have no effect. */
export const daysInBody = z.strictObject(members(z.number())).meta({
  id: 'Days',
  description: 'A session is found if any part of it was on these days.',
  examples: [{ startDate: '2026-11-20', endDate: '2026-11-20', timeZoneOffset: -60 }],
});
export const daysInQuery = z.strictObject(members(z.coerce.number<string>()));

export type Days = z.infer<typeof daysInBody>;

const minuteMs = 60_000;
const dayMs = 1_440 * minuteMs;

export function fallsOn(days: Days, period: Period, now: Date): boolean {
  const { startDate, endDate, timeZoneOffset = 0 } = days;
  const midnight = (date: string) => Date.parse(date) + timeZoneOffset * minuteMs;
  const isTooEarly = startDate !== undefined && (period.to ?? now).getTime() < midnight(startDate);
  const isTooLate = endDate !== undefined && period.from.getTime() >= midnight(endDate) + dayMs;
  return !isTooEarly && !isTooLate;
}
