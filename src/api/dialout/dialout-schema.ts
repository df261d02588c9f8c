// The dial-out request as it is written on the wire: what is checked member by member, and what the OpenAPI document says.
// What concerns several members (spellings, the path's bot, routes) is in dialout-request.ts.

import { z } from 'zod';
import { defaultAmdTimers, machineDetectionModes } from '../../calls/call-types.ts';
import { ignoredMembers } from '../../calls/contract/misspellings.ts';
import { eventSelectors, typesSelectedBy } from '../../calls/contract/notify-events.ts';
import { amdEventNames } from '../../calls/detection/amd-event.ts';
import { screeningMember, voicemailMember } from '../../calls/plans/plan-members.ts';
import { streamMember } from '../../calls/stream/stream-members.ts';
import {
  hasAtMostOneReading,
  numberReadingMembers,
  oneReadingOnly,
} from '../../calls/target/number-reading.ts';
import { isSipUser, targetMember } from '../../calls/target/parse-target.ts';
import { bridgeMember } from '../../calls/transfer/transfer-members.ts';
import { jsonProblem } from '../../http/stored-json.ts';
import { plainId } from '../../lib/ids.ts';
import { maxNotifyUrlLength, notifyUrlProblem } from '../../notifier/notify-url.ts';

export const botId = plainId.describe('bot or stream identifier').meta({ examples: ['st-1b2c3d'] });

const notifyUrl = z
  .string()
  .max(maxNotifyUrlLength)
  // A parser of URLs would leave them out, and mend what is half a character.
  .regex(/^[^\p{Cc}\p{Cs}]*$/u, 'must not contain control characters')
  .transform((text, context) => {
    const problem = notifyUrlProblem(text);
    if (problem !== undefined) {
      context.addIssue({ code: 'custom', message: problem });
      return z.NEVER;
    }
    const url = new URL(text);
    // A fragment never leaves a client.
    url.hash = '';
    return url.href;
  });

/** The context of a call travels in every event on NATS, whose messages are 1 MiB at most; many calls are alive at once. */
const longestMetadataBytes = 16 * 1_024;

const metadata = z.record(z.string(), z.unknown()).superRefine((value, context) => {
  const problem = jsonProblem(value, longestMetadataBytes);
  if (problem !== undefined) context.addIssue({ code: 'custom', message: problem });
});

/** The specification says "number": what is a fraction of a millisecond is rounded before its bounds are looked at. */
const milliseconds = (from: number, to: number) =>
  z.number().overwrite(Math.round).min(from).max(to);

/** Under 100 ms no timer can be told from the jitter of speech; over a minute a greeting is no greeting. */
const timer = milliseconds(100, 60_000);
/** These two wait for an outcome, and long greetings exist. */
const longTimer = milliseconds(100, 120_000);

export const timersSchema = z.object({
  noSpeechTimeoutMs: timer
    .default(defaultAmdTimers.noSpeechTimeoutMs)
    .describe('wait for speech before `amd_no_speech_detected`'),
  decisionTimeoutMs: longTimer
    .default(defaultAmdTimers.decisionTimeoutMs)
    .describe('wait for a verdict before `amd_decision_timeout`'),
  toneTimeoutMs: longTimer
    .default(defaultAmdTimers.toneTimeoutMs)
    .describe('from the answer, how long a tone is listened for'),
  greetingCompletionTimeoutMs: timer
    .default(defaultAmdTimers.greetingCompletionTimeoutMs)
    .describe('silence after a greeting before `amd_machine_stopped_speaking`'),
});

/** Kept as JSON and sent to the provider: no control characters, no halves of characters. */
const sttName = z
  .string()
  .max(128)
  .regex(/^[^\p{C}]+$/u, 'must be 1 to 128 characters without control characters');
export const callControlSchema = z.object({
  sttProvider: sttName.describe(
    'a speech-to-text provider. One that is not configured is accepted: the words are counted by ear and `transcription` is `unconfigured` in the evidence, unless the gateway has a default for it, or is strict, and then it is a 400',
  ),
  sttLanguage: sttName.describe('language code'),
  interim: z
    .boolean()
    .exactOptional()
    .describe('whether interim results are used as well; left out: they are'),
  sttLabel: sttName.exactOptional().describe('label that the provider files the audio under'),
  continuousASRTimeoutInMS: milliseconds(0, 60_000)
    .exactOptional()
    .describe('silence after which recognition may stop'),
  sttVendorUtteranceEndMs: milliseconds(0, 60_000)
    .exactOptional()
    .describe('silence that ends an utterance'),
  sttVendorEndpointing: milliseconds(0, 60_000)
    .exactOptional()
    .describe('silence used for endpointing; 0: none'),
});

/** Does what it says as it stands on a laptop: a voicemail of the sandbox, and where `offhook listen` listens. */
export const dialoutExample = {
  botId: 'st-1b2c3d',
  target: 'tel:+12025550110',
  caller: '+15559876543',
  notifyurl: 'http://127.0.0.1:4000/',
  machineDetection: 'detect',
  metadata: { customer: '4711' },
};

const shortestCallMs = 1_000;

export const dialoutSchema = z
  .object({
    botId: botId.describe('the bot of the path again; also accepted as `bot`'),
    target: targetMember.describe(
      '`tel:` number with country code, visual separators dropped, without parameters; or `sip:user@host[:port]`, without parameters or headers. A number that no phone can have (its length, its country code) is a 400. Without `+`, a number is taken if it is valid with one, e.g. `tel:12025550110`; how others are read, `defaultCountry` or `bareNumbers` must say',
    ),
    ...numberReadingMembers,
    caller: z
      .string()
      .refine(isSipUser, 'must be 1 to 128 characters of the user part of a SIP URI')
      .describe('user part of the caller ID'),
    notifyurl: notifyUrl
      .optional()
      .describe(
        'absolute http(s) URL for notifications, without user-info; left out: none are sent. Also accepted as `notifyUrl`',
      ),
    notifyHeaders: z
      .record(z.string(), z.string())
      .optional()
      .describe(
        'sent along with each notification. `Host`, `User-Agent`, hop-by-hop, length, encoding and signature headers are refused by name; `Accept` and `Content-Type: application/json` are accepted and change nothing',
      ),
    timeoutInMs: milliseconds(1_000, 180_000)
      .default(60_000)
      .describe('how long to wait for an answer'),
    queueTimeoutMs: milliseconds(1_000, 3_600_000)
      .optional()
      .describe(
        'how long the call may wait for room on its trunk; then it ends as `Failed` and is not dialled late. Left out: 5 minutes, or what the gateway is configured to',
      ),
    maxDurationMs: z
      .number()
      .overwrite(Math.round)
      .min(shortestCallMs)
      .optional()
      .describe(
        'how long the call may last from the answer; then it is hung up (outcome `completed`, `Maximum call duration reached`). At most `MAX_CALL_DURATION_MS` of the gateway (2 hours, unless it is configured otherwise), which holds where this is left out',
      ),
    trunk: z
      .string()
      .min(1)
      .max(64)
      .optional()
      .describe(
        "name of a trunk that the account may use; left out: the default of the account, or else everybody's, for `tel:`, no trunk at all for `sip:`",
      ),
    metadata: metadata
      .default({})
      .describe('JSON object passed to the bot in the call context, 16 KiB at most'),
    timers: timersSchema.prefault({}).describe('detection timers, milliseconds'),
    machineDetection: z
      .enum(machineDetectionModes)
      .default('disabled')
      .describe(
        '`disconnect`: hang up on a machine; `detect`: tell and go on; `disabled`. Also accepted as `machinedetection`',
      ),
    thresholdWordCount: z
      .number()
      .int()
      .min(1)
      .max(1_000)
      .optional()
      .describe('a strict rule: that many words in a greeting make a machine'),
    amdEventsSubscription: z
      .array(z.enum(amdEventNames))
      .max(64)
      .optional()
      .describe('AMD events to be notified of; left out: all; empty: none'),
    notifyEvents: z
      .array(z.enum(eventSelectors))
      .max(64)
      // What means the same is the same request.
      .transform(typesSelectedBy)
      .optional()
      .describe(
        'events to be notified of beside the four statuses, by type, family (`stream-*`) or `*`; each arrives with `status: Event`. `answered`, `amd`, `completed` and `failed` may be named and change nothing: they have a status of their own. Left out: no event beside the four statuses. Needs `notifyurl`',
      ),
    stream: streamMember
      .nullable()
      .optional()
      .describe(
        'the audio stream to the bot (Twilio Media Streams over WebSocket). Left out: as the bot is registered; null: none',
      ),
    voicemail: voicemailMember
      .optional()
      .describe(
        'a message for a machine, which begins within 150 ms after the beep; then the call is hung up. Needs `machineDetection: detect`',
      ),
    screening: screeningMember
      .optional()
      .describe(
        'what a call screener hears, once; then detection begins anew for the one who comes. Needs `machineDetection: detect`',
      ),
    bridge: bridgeMember
      .optional()
      .describe("whom the person is connected to, e.g. an agents' queue"),
    callControlParameter: callControlSchema
      .optional()
      .describe('speech-to-text as a second opinion on the words of the greeting'),
  })
  .refine(hasAtMostOneReading, { path: ['bareNumbers'], message: oneReadingOnly })
  .meta({
    id: 'DialoutRequest',
    description:
      'Members that are not listed do nothing, and are named in `ignored` of the answer. A near miss of a listed one (`machineDetect`, `timeoutMs`) is a 400 that gives its name. Milliseconds are rounded to whole ones.',
    examples: [dialoutExample],
  });

export const dialoutAnswerSchema = z
  .object({
    sid: z.string().describe('names the dial-out request'),
    callId: z.string().describe('names the call'),
    conversationId: z.string().describe('UUID that joins the notifications of this call'),
    target: z
      .string()
      .exactOptional()
      .describe('the number as it is dialled; only if `target` was written without `+`'),
    bridge: z
      .object({ to: z.string() })
      .exactOptional()
      .describe('likewise, if `bridge.to` was written without `+`'),
    ignored: ignoredMembers.exactOptional(),
  })
  .meta({
    id: 'DialoutAnswer',
    examples: [
      {
        sid: 'sid-6f1d2a4e-3c52-4f0e-8d0b-0a8c7f6d1e21',
        callId: 'call-0d9c4c52-9a63-4a7e-a7ab-0f1b5a9f7f10',
        conversationId: '5a8f9f1e-7d5d-4c0c-9a50-2f6a7c1f3b42',
      },
    ],
  });

export const idempotencyKey = z
  .string()
  .regex(/^[\x21-\x7e]{1,255}$/, 'must be 1 to 255 visible ASCII characters');
