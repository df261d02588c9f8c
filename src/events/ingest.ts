// Receives resources that external producers publish for the companion, as JSON on
// `<prefix>.ingest.<kind>.<bot id or alias>`. Producers don't use our code, so we check everything,
// and publish a resource as a dead letter if it is too large, invalid, or for an unknown bot.

import type { JsMsg } from '@nats-io/jetstream';
import { z } from 'zod';
import { describeIssues } from '../lib/issues.ts';
import type { Logger } from '../lib/logger.ts';
import { type BatchConsumer, type Read, startBatchConsumer } from './batch-consumer.ts';
import type { EventConnection } from './connection.ts';
import { type IngestKind, ingestSubject, streamNames } from './subjects.ts';

/** The same as for API requests. A batch of messages of this size still has to fit into memory. */
const maxBodyBytes = 256 * 1_024;
/** Deeper nesting could exhaust the stack of recursive code, including PostgreSQL's parser. */
const maxNesting = 32;
const maxReasonLength = 1_000;

export type BotOwner = { readonly botId: string; readonly accountId: string };

export type Ingested<Body> = {
  /** The bot under its own id, even if the message used an alias. */
  readonly bot: BotOwner;
  readonly body: Body;
  /**
   * Orders a resource's versions. The version is the time in microseconds at which the stream
   * stored the message, so a redelivery has the same version. Unlike a stream sequence, this time
   * keeps growing even if the stream is deleted and created again.
   */
  readonly version: number;
};

export type IngestConsumerOptions<Body> = {
  readonly kind: IngestKind;
  readonly schema: z.ZodType<Body>;
  /** Looks up a bot by id or alias. Undefined if no such bot is registered. */
  readonly ownerOf: (name: string) => Promise<BotOwner | undefined>;
  /**
   * Checks rules that depend on the bot, which the schema can't check.
   *
   * @returns undefined if the resource is valid, else the reason to put into its dead letter
   */
  readonly refuse?: (item: Ingested<Body>) => string | undefined;
  /**
   * Stores a batch completely or not at all. This must be idempotent, because the batch is
   * delivered again if it throws. A later version of a resource may arrive first.
   */
  readonly apply: (batch: readonly Ingested<Body>[]) => Promise<void>;
  /**
   * Called with an error from `apply`. If the error means that the resource can never be stored,
   * returns the reason. Returns undefined if a retry may succeed.
   */
  readonly refusalOf: (error: unknown) => string | undefined;
  readonly maxBatch: number;
  readonly logger: Logger;
};

type Unowned<Body> = { readonly name: string; readonly body: Body; readonly version: number };

export async function startIngestConsumer<Body>(
  connection: EventConnection,
  options: IngestConsumerOptions<Body>,
): Promise<BatchConsumer> {
  const { kind, schema, maxBatch, logger } = options;
  return await startBatchConsumer<Unowned<Body>>(connection, {
    stream: streamNames(connection.prefix).ingest,
    name: `ingest-${kind}`,
    filterSubject: ingestSubject(connection.prefix, kind, '*'),
    read: (message) => readBody(message, schema),
    handle: (items) => applyOwned(items, options),
    maxBatch,
    logger,
  });
}

function readBody<Body>(message: JsMsg, schema: z.ZodType<Body>): Read<Unowned<Body>> {
  const refused = (reason: string) => ({ ok: false as const, reason });
  if (message.data.length > maxBodyBytes) return refused(`larger than ${maxBodyBytes} bytes`);
  let value: unknown;
  try {
    value = JSON.parse(message.string());
  } catch {
    return refused('not JSON');
  }
  if (isDeeper(value, maxNesting)) return refused(`nested more than ${maxNesting} levels deep`);
  const parsed = schema.safeParse(value, { error: describeIssues });
  if (!parsed.success) return refused(z.prettifyError(parsed.error).slice(0, maxReasonLength));
  return {
    ok: true,
    item: {
      name: message.subject.slice(message.subject.lastIndexOf('.') + 1),
      body: parsed.data,
      version: Number(message.timestampNanos / 1_000n),
    },
  };
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((child) => isDeeper(child, levels - 1));
}

/**
 * Stores the valid items.
 *
 * @returns the items that can't be stored, each with the reason, e.g. because the bot is unknown,
 *   or because `refuse` or the database rejects the item
 */
async function applyOwned<Body>(
  items: readonly Unowned<Body>[],
  options: IngestConsumerOptions<Body>,
): Promise<ReadonlyMap<Unowned<Body>, string>> {
  const refused = new Map<Unowned<Body>, string>();
  const owned: Ingested<Body>[] = [];
  for (const item of items) {
    const known = await withOwner(item, options);
    if (typeof known === 'string') refused.set(item, known);
    else owned.push(known);
  }
  if (owned.length === 0) return refused;
  try {
    await options.apply(owned);
  } catch (error) {
    const refusal = options.refusalOf(error);
    const [only] = items;
    // In a larger batch, any item may have caused the error, so let the pump retry one by one.
    if (refusal === undefined || only === undefined || items.length > 1) throw error;
    refused.set(only, refusal);
  }
  return refused;
}

/** @returns the item with its bot, or the reason for rejecting it */
async function withOwner<Body>(
  { name, body, version }: Unowned<Body>,
  { ownerOf, refuse }: IngestConsumerOptions<Body>,
): Promise<Ingested<Body> | string> {
  const bot = await ownerOf(name);
  if (bot === undefined) return 'the bot is not registered';
  const item = { bot, body, version };
  return refuse?.(item) ?? item;
}
