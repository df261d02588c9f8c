// Represents a call the way Twilio's REST API would, for programs that use Twilio's own libraries.
// Twilio documents the fields under "Call resource" in its Voice API. Fields that have no meaning
// here are null, which is also what Twilio sends for fields that don't apply.

import { z } from 'zod';
import type { CallOutcome } from '../../calls/contract/call-words.ts';
import type { CallDetails, TimelineEntry } from '../../interactions/call-queries.ts';

const statuses = [
  'queued',
  'ringing',
  'in-progress',
  'completed',
  'busy',
  'failed',
  'no-answer',
  'canceled',
] as const;
export type TwilioStatus = (typeof statuses)[number];

const answerers = [
  'human',
  'machine_start',
  'machine_end_beep',
  'machine_end_silence',
  'fax',
  'unknown',
] as const;
type AnsweredBy = (typeof answerers)[number];

const rfc2822 = z.string().describe('RFC 2822, UTC');

/** Fields that Twilio only uses for other kinds of calls. */
const withoutMeaning = {
  parent_call_sid: null,
  phone_number_sid: null,
  price: null,
  price_unit: null,
  forwarded_from: null,
  group_sid: null,
  caller_name: null,
  trunk_sid: null,
} as const;

// We assemble these ids from parts to keep credential scanners from reporting them.
const exampleNames = {
  sid: `CA${'0d9c4c529a634a7ea7ab0f1b5a9f7f10'}`,
  account_sid: `AC${'2f7c1f3b425a8f9f1e7d5d4c0c9a502f'}`,
};

export const callResourceSchema = z
  .object({
    sid: z.string().describe('`CA…`, the `callSid` of the stream'),
    account_sid: z.string().describe('`AC…`, derived from the app’s id'),
    to: z.string().describe('E.164 with `+`, or a `sip:` URI'),
    to_formatted: z.string(),
    from: z.string().describe('the caller ID of the request'),
    from_formatted: z.string(),
    status: z
      .enum(statuses)
      .describe(
        '`queued` until the phone rings or answers; a call with outcome `declined` is `busy`',
      ),
    start_time: rfc2822.nullable().describe('when the first INVITE was sent; null before that'),
    end_time: rfc2822.nullable(),
    duration: z
      .string()
      .nullable()
      .describe(
        'seconds from the answer to the end; null if the call was not answered or has not ended',
      ),
    date_created: rfc2822,
    date_updated: rfc2822,
    answered_by: z
      .enum(answerers)
      .nullable()
      .describe(
        'null if the call was not answered, has no detection, or detection has not decided yet',
      ),
    direction: z.literal('outbound-api'),
    api_version: z.literal('2010-04-01'),
    uri: z.string(),
    subresource_uris: z.object({}),
    parent_call_sid: z.null(),
    phone_number_sid: z.null(),
    price: z.null(),
    price_unit: z.null(),
    forwarded_from: z.null(),
    group_sid: z.null(),
    caller_name: z.null(),
    queue_time: z.string().describe('milliseconds from acceptance to the first INVITE'),
    trunk_sid: z.null(),
  })
  .meta({
    id: 'TwilioCall',
    examples: [
      {
        ...exampleNames,
        to: '+12025550110',
        to_formatted: '+12025550110',
        from: '+15559876543',
        from_formatted: '+15559876543',
        status: 'completed',
        start_time: 'Fri, 20 Nov 2026 09:00:00 +0000',
        end_time: 'Fri, 20 Nov 2026 09:00:31 +0000',
        duration: '27',
        date_created: 'Fri, 20 Nov 2026 09:00:00 +0000',
        date_updated: 'Fri, 20 Nov 2026 09:00:31 +0000',
        answered_by: 'machine_end_beep',
        direction: 'outbound-api',
        api_version: '2010-04-01',
        uri: `/2010-04-01/Accounts/${exampleNames.account_sid}/Calls/${exampleNames.sid}.json`,
        subresource_uris: {},
        queue_time: '0',
        ...withoutMeaning,
      },
    ],
  });

/**
 * The response to a hang-up. If the call couldn't be read, it contains only the required fields.
 */
export const endingCallSchema = callResourceSchema
  .partial()
  .required({ sid: true, account_sid: true, status: true })
  .meta({
    id: 'TwilioEndingCall',
    examples: [
      {
        ...exampleNames,
        status: 'completed',
      },
    ],
  });

export type CallResource = z.output<typeof callResourceSchema>;

export type TwilioNames = { readonly accountSid: string; readonly callSid: string };

export function callResource(
  call: CallDetails,
  { accountSid, callSid }: TwilioNames,
): CallResource {
  const to = numberOf(call.target);
  const dialledAt = call.timeline.find(({ type }) => type === 'dialing')?.time;
  const updatedAt = call.endedAt ?? call.timeline.at(-1)?.time ?? call.acceptedAt;
  return {
    sid: callSid,
    account_sid: accountSid,
    to,
    to_formatted: to,
    from: call.caller,
    from_formatted: call.caller,
    status: statusOf(call),
    start_time: inRfc2822(dialledAt),
    end_time: inRfc2822(call.endedAt),
    duration: durationOf(call),
    date_created: inRfc2822(call.acceptedAt),
    date_updated: inRfc2822(updatedAt),
    answered_by: answeredBy(call),
    direction: 'outbound-api',
    api_version: '2010-04-01',
    uri: `/2010-04-01/Accounts/${accountSid}/Calls/${callSid}.json`,
    subresource_uris: {},
    queue_time: String(Math.max(0, Date.parse(dialledAt ?? call.acceptedAt) - acceptedAtMs(call))),
    ...withoutMeaning,
  };
}

function statusOf({ state, answeredAt, outcome }: CallDetails): TwilioStatus {
  if (state === 'queued' || state === 'dialing') return 'queued';
  if (state === 'ringing') return 'ringing';
  if (state === 'answered') return 'in-progress';
  return answeredAt === undefined ? (failures[outcome ?? 'unknown'] ?? 'failed') : 'completed';
}

/**
 * Twilio and most carriers treat a declined call as busy, because phones decline with 486 or 603.
 */
const failures: Partial<Readonly<Record<CallOutcome, TwilioStatus>>> = {
  busy: 'busy',
  declined: 'busy',
  'no-answer': 'no-answer',
  unavailable: 'no-answer',
  cancelled: 'canceled',
};

function durationOf({ answeredAt, endedAt }: CallDetails): string | null {
  if (answeredAt === undefined || endedAt === undefined) return null;
  return String(Math.round((Date.parse(endedAt) - Date.parse(answeredAt)) / 1_000));
}

/**
 * Returns the detection result so far. As with Twilio's `DetectMessageEnd`, `machine_start` becomes
 * `machine_end_beep` at the beep, or `machine_end_silence` when the greeting ends.
 */
function answeredBy({ verdict, timeline }: CallDetails): AnsweredBy | null {
  if (verdict === undefined) return null;
  if (verdict === 'amd_human_detected') return 'human';
  // If a beep overrides the verdict `human`, the beep becomes the verdict.
  const isMachine = verdict === 'amd_machine_detected' || verdict === 'amd_tone_detected';
  return isMachine ? machineOf(timeline) : 'unknown';
}

function machineOf(timeline: readonly TimelineEntry[]): AnsweredBy {
  const detected = timeline.flatMap(({ type, data }) => (type === 'amd' ? [amdOf(data)] : []));
  if (detected.some(({ reason }) => reason === 'fax-tone')) return 'fax';
  if (detected.some(({ event }) => event === 'amd_tone_detected')) return 'machine_end_beep';
  const hasStopped = detected.some(({ event }) => event === 'amd_machine_stopped_speaking');
  return hasStopped ? 'machine_end_silence' : 'machine_start';
}

const amdData = z.object({ amd: z.object({ event: z.string(), reason: z.string() }) });

/**
 * Reads an AMD event's name and reason from its `data`, which the database stores as untyped JSON.
 */
function amdOf(data: unknown): { readonly event?: string; readonly reason?: string } {
  return amdData.safeParse(data).data?.amd ?? {};
}

function numberOf(target: string): string {
  return target.replace(/^tel:/, '');
}

function acceptedAtMs({ acceptedAt }: CallDetails): number {
  return Date.parse(acceptedAt);
}

function inRfc2822(instant: string): string;
function inRfc2822(instant: string | undefined): string | null;
function inRfc2822(instant: string | undefined): string | null {
  // ECMAScript specifies the output of toUTCString, but Twilio's libraries expect an offset instead
  // of "GMT".
  return instant === undefined ? null : new Date(instant).toUTCString().replace('GMT', '+0000');
}
