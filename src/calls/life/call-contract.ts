// The contract for a call's life: the command that ends it, the events up to the answer, and the
// terminal events.

import { z } from 'zod';
import {
  type CallOutcome,
  callOutcomes,
  type ReasonCode,
  reasonCodes,
} from '../contract/call-words.ts';
import { callCommand, callEvent, seconds } from '../contract/definitions.ts';
import { durationMs, type Immutable, instant, wordOf } from '../contract/schema.ts';
import { amdEventNames, exampleAmdEvent } from '../detection/amd-event.ts';
import { voicemailLeft } from '../playback/playback-contract.ts';
import { recordingSummary } from '../recording/recording-contract.ts';
import { refusalMembers } from '../rules/refusal.ts';
import { transferSummary } from '../transfer/transfer-contract.ts';
import { callQuality, exampleQuality } from './call-quality.ts';
import { cause, causeText, connectedIdentity, endFactMembers } from './end-facts.ts';

export const hangupCommand = callCommand('hangup', {}).describe(
  'cancels the call or hangs up, in every state of the call',
);

const failedAttempt = z.object({
  gateway: z.string().describe('host:port, and the transport if it is not UDP'),
  sipStatus: z.number().int().exactOptional(),
  reason: z.string().describe('reason phrase without the status, or what failed'),
  durationMs,
  cause: cause.exactOptional(),
});
/** A failed attempt over one gateway, after which another gateway was tried. */
export type FailedAttempt = Immutable<z.infer<typeof failedAttempt>>;

const failedAttempts = z
  .array(failedAttempt)
  .exactOptional()
  .describe(
    'the failed attempts over earlier gateways, in order; absent if the first gateway accepted the call',
  );

/** The time of the answer and the durations that led to it. */
export const answerTimes = {
  callConnectTime: instant,
  ringDurationInMS: durationMs,
  connectDurationInMS: durationMs,
};
export type AnswerTimes = Immutable<z.infer<z.ZodObject<typeof answerTimes>>>;

export const exampleAnswer = {
  callConnectTime: '2026-11-20T09:00:04.310Z',
  ringDurationInMS: 2_900,
  connectDurationInMS: 3_120,
} as const;

export const placingEvents = {
  queued: callEvent({
    when: 'the request is stored',
    data: { trunk: z.string().exactOptional() },
    line: () => '',
    watched: ({ trunk }, { appId, botId }) =>
      `queued by ${appId} for bot ${botId}${trunk === undefined ? '' : `, trunk ${trunk}`}`,
    example: { trunk: 'carrier' },
  }),
  dialing: callEvent({
    when: 'an INVITE was sent; one event for each gateway tried',
    data: {
      trunk: z.string().exactOptional(),
      gateway: z.string(),
      attempt: z.number().int().min(1).describe('counts the gateways from 1'),
      failedAttempts,
    },
    line: ({ trunk = 'no trunk', gateway, failedAttempts: failed }) => {
      const last = failed?.at(-1);
      const after = last === undefined ? '' : `, after ${last.sipStatus ?? ''} ${last.reason}`;
      return `by ${trunk} to ${gateway}${after}`;
    },
    watched: ({ gateway, attempt, failedAttempts: failed }) => {
      const last = failed?.at(-1);
      if (last === undefined) return `dialing over ${gateway}`;
      const why = [last.sipStatus, last.reason].filter((part) => part !== undefined).join(' ');
      return `dialing over ${gateway}, gateway ${attempt}, because ${last.gateway} failed: ${why}`;
    },
    example: { trunk: 'carrier', gateway: 'sip.carrier.example:5060', attempt: 1 },
  }),
  ringing: callEvent({
    when: 'the first 18x response arrived',
    data: { sipStatus: z.number().int(), sipReason: z.string(), earlyMedia: z.boolean() },
    line: ({ sipStatus, sipReason }) => `${sipStatus} ${sipReason}`,
    watched: ({ sipStatus, sipReason, earlyMedia }) =>
      `ringing (${sipStatus} ${sipReason}${earlyMedia ? ', early media' : ''})`,
    example: { sipStatus: 180, sipReason: 'Ringing', earlyMedia: false },
  }),
  answered: callEvent({
    when: 'the 200 OK was stored and acknowledged',
    data: { ...answerTimes, connectedIdentity: connectedIdentity.exactOptional() },
    line: () => '',
    watched: ({ ringDurationInMS }) => `answered after ringing ${seconds(ringDurationInMS)}`,
    example: { ...exampleAnswer, notificationSequence: 1 },
  }),
};

const endData = {
  outcome: wordOf<CallOutcome>(callOutcomes),
  reason: z.string(),
  reasonCode: wordOf<ReasonCode>(reasonCodes),
  sipStatus: z.number().int().exactOptional().describe('absent if no SIP status led to the end'),
  ...endFactMembers,
  ...refusalMembers,
  connectedIdentity: connectedIdentity.exactOptional(),
  callConnectTime: instant.exactOptional().describe('absent if the call was never answered'),
  ringDurationInMS: durationMs.describe(
    'from the first 18x to the answer, or to the end; 0 if it never rang',
  ),
  connectDurationInMS: durationMs.describe('from the INVITE to the answer; 0 if never answered'),
  callDisconnectTime: instant,
  callDurationS: durationMs
    .exactOptional()
    .describe('whole seconds from answer to end; only on `completed`'),
  callDurationMs: durationMs
    .exactOptional()
    .describe('duration of the call in milliseconds, not rounded'),
  sessionId: z
    .string()
    .exactOptional()
    .describe('only on `completed`: the id for `GET …/conversations/sessions/{sessionId}`'),
  machineDetection: z
    .enum(amdEventNames)
    .exactOptional()
    .describe('the verdict, if detection ran and reached one; never `amd_stopped`'),
  machineDetected: z
    .boolean()
    .exactOptional()
    .describe('true if the call ended because a machine picked up'),
  abandoned: z
    .literal(true)
    .exactOptional()
    .describe('present if a person answered and nobody was connected within two seconds'),
  optedOut: z
    .literal(true)
    .exactOptional()
    .describe('present if the person asked not to be called any more'),
  playedMs: durationMs
    .exactOptional()
    .describe('total duration of the audio of sounds that was sent; absent if no sound was played'),
  voicemail: voicemailLeft
    .exactOptional()
    .describe('the message that a plan left; absent if no message was begun'),
  transfer: transferSummary
    .exactOptional()
    .describe('the result of the last transfer; absent if there was no transfer'),
  quality: callQuality
    .exactOptional()
    .describe(
      'how the call sounded, on `completed`; absent if no audio arrived or the gateway died',
    ),
  recording: recordingSummary
    .exactOptional()
    .describe('what became of the recording until now; absent if nothing was recorded'),
  failedAttempts,
};
type EndData = Immutable<z.infer<z.ZodObject<typeof endData>>>;

const endLine = ({
  reason,
  reasonCode,
  callDurationMs,
  machineDetection,
  ...facts
}: EndData): string => {
  const why = facts.cause === undefined ? [] : [causeText(facts.cause)];
  const blocker = facts.block?.by === undefined ? [] : [`blocked by ${facts.block.by}`];
  const duration = callDurationMs === undefined ? [] : [`${(callDurationMs / 1_000).toFixed(3)} s`];
  const verdict = machineDetection === undefined ? [] : [machineDetection];
  return [reason, reasonCode, ...blocker, ...why, ...duration, ...verdict].join(', ');
};

/** The terminal events. Every call ends with exactly one of them. */
export const endEvents = {
  completed: callEvent({
    when: 'an answered call ended',
    data: endData,
    line: endLine,
    watched: ({ reasonCode, outcome, callDurationMs = 0 }) => {
      const why = outcome === 'completed' ? reasonCode : `${reasonCode}, ${outcome}`;
      return `completed: ${why}, ${seconds(callDurationMs)} after the answer`;
    },
    example: {
      outcome: 'completed',
      reason: '200 OK',
      reasonCode: 'Caller-disconnected',
      ...exampleAnswer,
      callDisconnectTime: '2026-11-20T09:00:16.710Z',
      callDurationS: 12,
      callDurationMs: 12_400,
      sessionId: 'ss-0d9c4c52-9a63-4a7e-a7ab-0f1b5a9f7f10',
      machineDetection: exampleAmdEvent.event,
      quality: exampleQuality,
      notificationSequence: 3,
    },
  }),
  failed: callEvent({
    when: 'a call ended before it was answered',
    data: endData,
    line: endLine,
    watched: ({ reason, outcome }) => `failed: ${reason} (${outcome})`,
    example: {
      outcome: 'busy',
      reason: '486 Busy Here',
      reasonCode: 'Busy here',
      sipStatus: 486,
      ringDurationInMS: 0,
      connectDurationInMS: 0,
      callDisconnectTime: '2026-11-20T09:00:02.120Z',
      notificationSequence: 1,
    },
  }),
};
