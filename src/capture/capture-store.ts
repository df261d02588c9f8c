// Captures in SQL: written once, when a call is over, and gone with the call.

import { promisify } from 'node:util';
import { deflateRaw, inflateRaw } from 'node:zlib';
import type { Pool } from 'pg';
import { z } from 'zod';
import { matching } from '../calls/contract/schema.ts';
import type { SipLogView } from './sip-log.ts';

/** How loud it was, bytes as base64. */
export type AudioView = {
  readonly startedAt: number;
  readonly stepMs: number;
  readonly heard: string;
  readonly said: string;
};

export type CaptureView = { readonly sip?: SipLogView; readonly audio?: AudioView };

const sipSchema = z.object({
  messages: z.array(
    z.object({
      at: z.string(),
      isOurs: z.boolean(),
      transport: z.string(),
      address: z.string(),
      port: z.number(),
      text: z.string(),
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

export type StoredCapture = { readonly callId: string; readonly capture: CaptureView };

// One that is there stays: a call has one owner at a time, and the first that ends it has seen most of it.
const writeStatement = {
  name: 'write captures',
  text: `
insert into call_captures (call_id, sip, audio)
select call_id, decode(sip, 'base64'), decode(audio, 'base64')
from json_to_recordset($1::json) as given(call_id text, sip text, audio text)
order by call_id
on conflict (call_id) do nothing`,
} as const;

export async function writeCaptures(pool: Pool, captures: readonly StoredCapture[]): Promise<void> {
  const rows = await Promise.all(
    captures.map(async ({ callId, capture: { sip, audio } }) => ({
      call_id: callId,
      sip: sip && (await packed(sip)),
      audio: audio && (await packed(audio)),
    })),
  );
  await pool.query({ ...writeStatement, values: [JSON.stringify(rows)] });
}

/** Undefined: none was kept. */
export async function readCapture(pool: Pool, callId: string): Promise<CaptureView | undefined> {
  const { rows } = await pool.query<{ sip: Buffer | null; audio: Buffer | null }>(
    'select sip, audio from call_captures where call_id = $1',
    [callId],
  );
  const [row] = rows;
  if (row === undefined) return undefined;
  const sip = row.sip === null ? undefined : matching(sipSchema, await unpacked(row.sip));
  const audio = row.audio === null ? undefined : matching(audioSchema, await unpacked(row.audio));
  return {
    ...(sip?.ok === true ? { sip: sip.value } : {}),
    ...(audio?.ok === true ? { audio: audio.value } : {}),
  };
}

/** The fastest level: SIP repeats itself so much that more would gain little. */
async function packed(value: SipLogView | AudioView): Promise<string> {
  return (await promisify(deflateRaw)(JSON.stringify(value), { level: 1 })).toString('base64');
}

async function unpacked(bytes: Buffer): Promise<unknown> {
  const text = await promisify(inflateRaw)(bytes, { maxOutputLength: 1_048_576 });
  return JSON.parse(text.toString('utf8')) as unknown;
}
