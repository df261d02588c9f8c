// Stores captures in the database. We write a capture only once, after the call has ended, and
// delete the capture together with the call.

import { promisify } from 'node:util';
import { deflateRaw, deflateRawSync, inflateRaw } from 'node:zlib';
import type { Pool } from 'pg';
import { z } from 'zod';
import type { CallNotesView } from '../calls/capture/capture.ts';
import { type Immutable, matching } from '../calls/contract/schema.ts';
import type { SipLogView } from './sip-log.ts';

/** Loudness of both sides over time. `heard` and `said` are base64, with one byte per step. */
export type AudioView = {
  readonly startedAt: number;
  readonly stepMs: number;
  readonly heard: string;
  readonly said: string;
};

export type CaptureView = {
  readonly sip?: SipLogView;
  readonly audio?: AudioView;
  readonly notes?: CallNotesView;
};

const sipSchema = z.object({
  messages: z.array(
    z.object({
      at: z.string(),
      isOurs: z.boolean(),
      transport: z.string(),
      address: z.string(),
      port: z.number(),
      text: z.string(),
      leg: z.number().int().min(1).exactOptional(),
    }),
  ),
  left: z.number(),
});
const audioSchema = z.object({
  startedAt: z.number(),
  stepMs: z.number(),
  heard: z.string(),
  said: z.string(),
});
const at = z.number();
const noteSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('mark'), at, name: z.string(), returnedAt: at.exactOptional() }),
  z.object({ kind: z.literal('clear'), at, droppedMs: z.number() }),
  z.object({ kind: z.literal('words'), at, untilAt: at, text: z.string() }),
  z.object({
    ...{ kind: z.literal('command'), at, what: z.string(), by: z.string(), tookMs: z.number() },
    ...{ commandId: z.string().exactOptional(), refusal: z.string().exactOptional() },
  }),
]);
const notesSchema = z.object({ notes: z.array(noteSchema), left: z.number() });

/** Schema for captures received from other nodes. */
export const captureSchema = z.object({
  sip: sipSchema.exactOptional(),
  audio: audioSchema.exactOptional(),
  notes: notesSchema.exactOptional(),
});

export type StoredCapture = { readonly callId: string; readonly capture: CaptureView };

// Doesn't replace an existing capture. A call has only one owner at a time, and usually the first
// owner that writes a capture has seen most of the call.
const writeStatement = {
  name: 'write captures',
  text: `
insert into call_captures (day, call_id, sip, audio, notes)
select c.day, given.call_id, decode(sip, 'base64'), decode(audio, 'base64'), decode(notes, 'base64')
from json_to_recordset($1::json) as given(call_id text, sip text, audio text, notes text)
cross join lateral (select day from calls where calls.call_id = given.call_id limit 1) as c
order by given.call_id
on conflict do nothing`,
} as const;

/**
 * A SIP transaction's messages resemble each other, so a 4 KB window is enough. With its defaults,
 * zlib would allocate and clear 270 KB for each call.
 */
const packing = { level: 1, windowBits: 12, memLevel: 5 };

export async function writeCaptures(pool: Pool, captures: readonly StoredCapture[]): Promise<void> {
  const rows = await Promise.all(
    captures.map(async ({ callId, capture: { sip, audio, notes } }) => ({
      call_id: callId,
      sip: sip && (await packed(sip)),
      audio: audio && (await packed(audio)),
      notes: notes && (await packed(notes)),
    })),
  );
  await pool.query({ ...writeStatement, values: [JSON.stringify(rows)] });
}

type Columns = {
  readonly sip: Buffer | null;
  readonly audio: Buffer | null;
  readonly notes: Buffer | null;
};

type Queries = {
  query<Row extends object>(statement: string, values: unknown[]): Promise<{ rows: Row[] }>;
};

/** @returns undefined if nothing was captured */
export async function readCapture(
  queries: Queries,
  callId: string,
): Promise<CaptureView | undefined> {
  const { rows } = await queries.query<Columns>(
    `select sip, audio, notes from call_captures
     where call_id = $1 and day = (select day from calls where call_id = $1)`,
    [callId],
  );
  const [row] = rows;
  if (row === undefined) return undefined;
  const sip = await unpacked(row.sip, sipSchema);
  const audio = await unpacked(row.audio, audioSchema);
  const notes = await unpacked(row.notes, notesSchema);
  return {
    ...(sip === undefined ? {} : { sip }),
    ...(audio === undefined ? {} : { audio }),
    ...(notes === undefined ? {} : { notes }),
  };
}

/**
 * We compress texts up to this length on this thread. For a one-minute call that takes about 20 µs,
 * which is a quarter of what it would cost to use another thread.
 */
const maxLengthOnThisThread = 8_192;

/** Compresses at the fastest level. SIP is so repetitive that a higher level gains little. */
async function packed(value: SipLogView | AudioView | CallNotesView): Promise<string> {
  const text = JSON.stringify(value);
  const isShort = text.length <= maxLengthOnThisThread;
  const bytes = isShort
    ? deflateRawSync(text, packing)
    : await promisify(deflateRaw)(text, packing);
  return bytes.toString('base64');
}

/**
 * @returns undefined if the column is null, or if a different version has written it in a format
 *   that we don't know
 */
async function unpacked<Schema extends z.ZodType>(
  bytes: Buffer | null,
  schema: Schema,
): Promise<Immutable<z.infer<Schema>> | undefined> {
  if (bytes === null) return undefined;
  const text = await promisify(inflateRaw)(bytes, { maxOutputLength: 1_048_576 });
  const read = matching(schema, JSON.parse(text.toString('utf8')) as unknown);
  return read.ok ? read.value : undefined;
}
