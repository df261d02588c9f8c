// The dial-out request's schema, which checks each field and contains the texts for the OpenAPI
// document. Rules that concern several fields (spellings, the bot in the path, routes) are in
// dialout-request.ts.

import { z } from 'zod';
import { announcementMembers } from '../../calls/announcements/announcement-members.ts';
import { defaultAmdTimers, machineDetectionModes } from '../../calls/call-types.ts';
import { callerMembers } from '../../calls/caller/caller-members.ts';
import { ignoredMembers } from '../../calls/contract/misspellings.ts';
import { eventSelectors, typesSelectedBy } from '../../calls/contract/notify-events.ts';
import { timestamp } from '../../calls/contract/timestamp.ts';
import { amdEventNames } from '../../calls/detection/amd-event.ts';
import { detectionMember } from '../../calls/detection/detection-members.ts';
import { maxHeldQueueTimeoutMs, maxRingTimeoutMs } from '../../calls/dialout-limits.ts';
import { optOutMembers } from '../../calls/opt-out/opt-out-members.ts';
import { screeningMember, voicemailMember } from '../../calls/plans/plan-members.ts';
import { recordingMemberWith } from '../../calls/recording/recording-members.ts';
import { consentMember } from '../../calls/rules/consent.ts';
import { ruleNames } from '../../calls/rules/rule-words.ts';
import { streamMember } from '../../calls/stream/stream-members.ts';
import {
  hasAtMostOneReading,
  numberReadingMembers,
  oneReadingOnly,
} from '../../calls/target/number-reading.ts';
import { isSipUser, targetMember } from '../../calls/target/parse-target.ts';
import { bridgeMember } from '../../calls/transfer/transfer-members.ts';
import { jsonProblem } from '../../http/stored-json.ts';
import { identifierUpTo, plainId } from '../../lib/ids.ts';
import { isTimeZone } from '../../lib/local-days.ts';
import { ruleSetName } from '../../rules/rule-set.ts';
import { notifyUrlMember } from './notify-url-member.ts';

export const botId = plainId.describe('bot or stream identifier').meta({ examples: ['st-1b2c3d'] });

/** Every event on NATS carries its call's metadata, and a message can't exceed 1 MiB. */
const maxMetadataBytes = 16 * 1_024;

const metadata = z.record(z.string(), z.unknown()).superRefine((value, context) => {
  const problem = jsonProblem(value, maxMetadataBytes);
  if (problem !== undefined) context.addIssue({ code: 'custom', message: problem });
});

export const campaignName = identifierUpTo(64).meta({ examples: ['spring'] });

/** The specification allows any number, so we round fractions before we check the bounds. */
const milliseconds = (from: number, to: number) =>
  z.number().overwrite(Math.round).min(from).max(to);

/** Shorter timers would expire in any pause of speech, and no greeting lasts over a minute. */
const timer = milliseconds(100, 60_000);
/** For the two timers that may have to last through a whole greeting and its beep. */
const longTimer = milliseconds(100, 120_000);

export const timersSchema = z.object({
  noSpeechTimeoutMs: timer
    .default(defaultAmdTimers.noSpeechTimeoutMs)
    .describe('how long to wait for speech before `amd_no_speech_detected`'),
  decisionTimeoutMs: longTimer
    .default(defaultAmdTimers.decisionTimeoutMs)
    .describe('how long to wait for a verdict before `amd_decision_timeout`'),
  toneTimeoutMs: longTimer
    .default(defaultAmdTimers.toneTimeoutMs)
    .describe('how long to listen for a tone, from the answer'),
  greetingCompletionTimeoutMs: timer
    .default(defaultAmdTimers.greetingCompletionTimeoutMs)
    .describe(
      'how long the silence after a greeting must last before `amd_machine_stopped_speaking`',
    ),
});

/**
 * We store these names as JSON and send them to the provider, so they can't contain control
 * characters or half a surrogate pair.
 */
const sttName = z
  .string()
  .max(128)
  .regex(/^[^\p{C}]+$/u, 'must be 1 to 128 characters without control characters');
export const callControlSchema = z.object({
  sttProvider: sttName.describe(
    'a speech-to-text provider. Normally you can name a provider that is not configured: detection then estimates the number of words from the sound, and sets `transcription` in the evidence to `unconfigured`. Depending on its configuration, the gateway may use a default provider instead, or reject the request with 400',
  ),
  sttLanguage: sttName.describe('language code'),
  interim: z
    .boolean()
    .exactOptional()
    .describe('whether to use interim results as well. Default: true'),
  sttLabel: sttName.exactOptional().describe('label that the provider files the audio under'),
  continuousASRTimeoutInMS: milliseconds(0, 60_000)
    .exactOptional()
    .describe('silence after which recognition may stop'),
  sttVendorUtteranceEndMs: milliseconds(0, 60_000)
    .exactOptional()
    .describe('silence that ends an utterance'),
  sttVendorEndpointing: milliseconds(0, 60_000)
    .exactOptional()
    .describe('silence used for endpointing; 0 turns endpointing off'),
});

/**
 * This example works unchanged with a local gateway, because it calls the sandbox's voicemail and
 * notifies `offhook listen`.
 */
export const dialoutExample = {
  botId: 'st-1b2c3d',
  target: 'tel:+12025550110',
  caller: '+15559876543',
  notifyurl: 'http://127.0.0.1:4000/',
  machineDetection: 'detect',
  metadata: { customer: '4711' },
};

/** The `recording` field of a request and of a bot. */
export const recordingMember = recordingMemberWith(notifyUrlMember);

const minCallMs = 1_000;

export const dialoutSchema = z
  .object({
    botId: botId.describe('the bot that the path names; also accepted as `bot`'),
    target: targetMember.describe(
      'whom to call: a `tel:` number with its country code, in which visual separators are ignored, and with an extension if there is one (`tel:+12025550110;ext=123`); a local number with its context (`tel:7042;phone-context=example.com`, RFC 3966); or `sip:user@host[:port]` without parameters or headers. A number that no phone can have (judging by its length or country code) is rejected with 400. A number without `+` is accepted if it is valid with one, e.g. `tel:12025550110`. For other numbers without `+`, set `defaultCountry` or `bareNumbers`',
    ),
    ...numberReadingMembers,
    caller: z
      .string()
      .refine(isSipUser, 'must be 1 to 128 characters of the user part of a SIP URI')
      .describe('user part of the caller ID'),
    ...callerMembers,
    headers: z
      .record(z.string(), z.string())
      .optional()
      .describe(
        'further headers of the call’s INVITE, each of which the call’s trunk must list in its `passHeaders`. A header that the trunk does not pass on, that the gateway writes itself, or that needs a trunk that the call doesn’t use, is rejected with a 400 that names it, e.g. `headers.X-Ticket`. At most 16 headers and 2,048 bytes, together with `identity` and twice `callerName`',
      ),
    notifyurl: notifyUrlMember
      .optional()
      .describe(
        'absolute http(s) URL for notifications, without user-info. If you omit it, no notifications are sent. Also accepted as `notifyUrl`',
      ),
    notifyHeaders: z
      .record(z.string(), z.string())
      .optional()
      .describe(
        'headers to send with each notification. `Host`, `User-Agent`, and hop-by-hop, length, encoding and signature headers are rejected with a 400 that names them; `Accept` and `Content-Type: application/json` are accepted and have no effect',
      ),
    timeoutInMs: milliseconds(1_000, maxRingTimeoutMs)
      .default(60_000)
      .describe('how long to wait for an answer'),
    queueTimeoutMs: milliseconds(1_000, maxHeldQueueTimeoutMs)
      .optional()
      .describe(
        'how long the call may wait for a free slot on its trunk, and for a calling rule with `otherwise: wait`. After that it ends as `Failed` without being dialled. At most 1 hour, or 72 hours if the rule set that applies has `hours`. Default: 5 minutes, or the value configured on the gateway',
      ),
    maxDurationMs: z
      .number()
      .overwrite(Math.round)
      .min(minCallMs)
      .optional()
      .describe(
        'how long the call may last after the answer. Then the gateway hangs up (outcome `completed`, reason `Maximum call duration reached`). Default and maximum: the gateway’s `MAX_CALL_DURATION_MS` (2 hours unless configured otherwise)',
      ),
    trunk: z
      .string()
      .min(1)
      .max(64)
      .optional()
      .describe(
        'name of a trunk that the account may use. Default for `tel:`: the account’s default trunk, or else the default trunk for all accounts. Default for `sip:`: no trunk',
      ),
    metadata: metadata
      .default({})
      .describe('JSON object passed to the bot in the call context, at most 16 KiB'),
    campaign: campaignName
      .optional()
      .describe(
        'name of the campaign that the call belongs to. Lists show it and can be filtered by it',
      ),
    rules: ruleSetName
      .optional()
      .describe(
        'the rule set that applies to this call instead of the account’s `default`. An unknown one is rejected with 400. Suppressions apply to every call',
      ),
    consent: consentMember
      .optional()
      .describe(
        'what the person agreed to. Stored with the call and its record. A rule set may require it',
      ),
    timeZone: z
      .string()
      .max(64)
      .refine(isTimeZone, 'must be an IANA time zone, e.g. America/New_York')
      .optional()
      .describe(
        'where the person is, for the hours of the rule set. Default: the time zones of the number’s prefix, all of which must permit the call',
      ),
    timers: timersSchema.prefault({}).describe('detection timers in milliseconds'),
    machineDetection: z
      .enum(machineDetectionModes)
      .default('disabled')
      .describe(
        '`disconnect`: hang up on a machine; `detect`: report the result and continue the call; `disabled`: no detection. Also accepted as `machinedetection`',
      ),
    detection: detectionMember,
    thresholdWordCount: z
      .number()
      .int()
      .min(1)
      .max(1_000)
      .optional()
      .describe('a strict rule: a greeting with at least this many words is a machine'),
    amdEventsSubscription: z
      .array(z.enum(amdEventNames))
      .max(64)
      .optional()
      .describe('AMD events to notify. An empty list turns them off. Default: all'),
    notifyEvents: z
      .array(z.enum(eventSelectors))
      .max(64)
      // Selections with the same meaning must produce the same request.
      .transform(typesSelectedBy)
      .optional()
      .describe(
        'events to notify in addition to the four statuses, by type, family (`stream-*`) or `*`. Each arrives with `status: Event`. Naming `answered`, `amd`, `completed` or `failed` has no effect, because they already have their own status. Default: only the four statuses. Needs `notifyurl`',
      ),
    stream: streamMember
      .nullable()
      .optional()
      .describe(
        'the audio stream to the bot (Twilio Media Streams over WebSocket). Null: no stream. Default: the stream that the bot is registered with',
      ),
    ...announcementMembers,
    ...optOutMembers,
    voicemail: voicemailMember
      .optional()
      .describe(
        'a message to leave on a machine. It begins within 150 ms of the beep. After the message the gateway hangs up. Needs `machineDetection: detect`',
      ),
    screening: screeningMember
      .optional()
      .describe(
        'an answer to play once to a call screener. Detection then starts over for the person who comes to the phone. Needs `machineDetection: detect`',
      ),
    recording: z
      .union([z.boolean(), recordingMember], { error: 'must be an object, true or false' })
      .optional()
      .describe(
        'how the call is recorded. `true`: with the settings of the registered bot, or the defaults; an object replaces those settings one by one; `false`: the call must not be recorded, not even by command. Default: as the bot is registered, or else not recorded unless the command `record` starts it',
      ),
    bridge: bridgeMember
      .optional()
      .describe("the party to connect the person to, e.g. an agents' queue"),
    callControlParameter: callControlSchema
      .optional()
      .describe('speech-to-text for the greeting, so that its words decide the verdict'),
  })
  .refine(hasAtMostOneReading, { path: ['bareNumbers'], message: oneReadingOnly })
  .meta({
    id: 'DialoutRequest',
    description:
      'Fields that are not listed have no effect; the response names them in `ignored`. If you misspell a listed field (`machineDetect`, `timeoutMs`), you get a 400 that names the right one. Milliseconds are rounded to whole numbers.',
    examples: [dialoutExample],
  });

export const dialoutAnswerSchema = z
  .object({
    sid: z.string().describe('id of the dial-out request'),
    callId: z.string().describe('id of the call'),
    conversationId: z.string().describe('UUID that all notifications of this call share'),
    target: z
      .string()
      .exactOptional()
      .describe('the number that will be dialled; only if `target` was written without `+`'),
    bridge: z
      .object({ to: z.string() })
      .exactOptional()
      .describe(
        '`to` is the number that will be dialled; only if `bridge.to` was written without `+`',
      ),
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

export const dialoutQuery = z.object({
  check: z
    .enum(['true', 'false'])
    .optional()
    .describe(
      '`true`: only says what the calling rules would decide about this call now. No call is placed',
    ),
});

export const dialoutCheckSchema = z
  .object({
    permitted: z.boolean().describe('whether the rules permit the call now'),
    rule: z
      .enum(ruleNames)
      .exactOptional()
      .describe('the rule that the call would wait for, or that would end it'),
    notBefore: timestamp
      .exactOptional()
      .describe(
        'when the rules permit the call, if nothing happens before. Only if a time is known',
      ),
    ruleSet: z.string().exactOptional().describe('the rule set that applies'),
    ruleSetVersion: z.number().int().exactOptional(),
    timeZones: z.array(z.string()).describe('where the person may be; empty if that is not known'),
  })
  .meta({
    id: 'DialoutCheck',
    description: 'The response to a request with `check=true`.',
    examples: [
      {
        permitted: false,
        rule: 'hours',
        notBefore: '2026-11-20T13:00:00.000Z',
        ruleSet: 'default',
        ruleSetVersion: 3,
        timeZones: ['America/New_York'],
      },
    ],
  });

export const idempotencyKey = z
  .string()
  .regex(/^[\x21-\x7e]{1,255}$/, 'must be 1 to 255 visible ASCII characters');
