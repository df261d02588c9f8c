// What producers outside publish for the companion: a resource as JSON on `<prefix>.ingest.<kind>.<bot id or alias>`. They
// need no code of ours, so nothing is believed: what is too large, not valid, or about an unknown bot becomes a dead letter.

import type { JsMsg } from '@nats-io/jetstream';
import { z } from 'zod';
import { describeIssues } from '../lib/issues.ts';
import type { Logger } from '../lib/logger.ts';
import { type BatchConsumer, type Read, startBatchConsumer } from './batch-consumer.ts';
import type { EventConnection } from './connection.ts';
import { type IngestKind, ingestSubject, streamNames } from './subjects.ts';

/** As much as a request of the API may carry; a batch of the largest must fit into memory. */
const maxBodyBytes = 256 * 1_024;
/** Deeper nesting is an attack on code that walks it recursively, PostgreSQL's parser included. */
const maxNesting = 32;
const maxReasonLength = 1_000;

export type BotOwner = { readonly botId: string; readonly accountId: string };

export type Ingested<Body> = {
  /** By its own id, whichever name was published. */
  readonly bot: BotOwner;
  readonly body: Body;
  /**
   * Of two versions of a resource the one with the higher number is the later one, and the same again has the same: the
   * instant of storing in microseconds, which unlike a sequence goes on where the stream was made anew.
   */
  readonly version: number;
};

export type IngestConsumerOptions<Body> = {
  readonly kind: IngestKind;
  readonly schema: z.ZodType<Body>;
  /** By id or alias; undefined: unknown. */
  readonly ownerOf: (name: string) => Promise<BotOwner | undefined>;
  /** What the schema cannot know is wrong with it, now that it is known whose bot it is about. */
  readonly refuse?: (item: Ingested<Body>) => string | undefined;
  /** Idempotent, all or nothing: a throw brings the batch again. May see a later version first. */
  readonly apply: (batch: readonly Ingested<Body>[]) => Promise<void>;
  /** Of what `apply` threw: why a resource will never be taken. Undefined: it may be taken later. */
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

/** Those of unknown bots or that are refused, and the one that the store will never take, with the reason. */
async function applyOwned<Body>(
  items: readonly Unowned<Body>[],
  options: IngestConsumerOptions<Body>,
): Promise<ReadonlyMap<Unowned<Body>, string>> {
  const refused = new Map<Unowned<Body>, string>();
  const owned: Ingested<Body>[] = [];
  for (const item of items) {
    const known = await ownedOf(item, options);
    if (typeof known === 'string') refused.set(item, known);
    else owned.push(known);
  }
  if (owned.length === 0) return refused;
  try {
    await options.apply(owned);
  } catch (error) {
    const refusal = options.refusalOf(error);
    const [only] = items;
    // In a batch it may be any of them; the pump comes again with each alone.
    if (refusal === undefined || only === undefined || items.length > 1) throw error;
    refused.set(only, refusal);
  }
  return refused;
}

/** Or why it is not taken. */
async function ownedOf<Body>(
  { name, body, version }: Unowned<Body>,
  { ownerOf, refuse }: IngestConsumerOptions<Body>,
): Promise<Ingested<Body> | string> {
  const bot = await ownerOf(name);
  if (bot === undefined) return 'the bot is not registered';
  const item = { bot, body, version };
  return refuse?.(item) ?? item;
}
