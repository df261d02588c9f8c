// Bodies sent to notify URLs. A notification with one of the four specified statuses contains the
// specification's fields in canonical spelling, plus a few that this gateway adds. A notification
// with status `Event` contains an event that the request selected.

import { z } from 'zod';
import { amdEventNames, amdEvidence } from '../detection/amd-event.ts';
import { callQuality } from '../life/call-quality.ts';
import { connectedIdentity, endFactMembers } from '../life/end-facts.ts';
import { voicemailLeft } from '../playback/playback-contract.ts';
import { recordingSummary } from '../recording/recording-contract.ts';
import { refusalMembers } from '../rules/refusal.ts';
import { transferSummary } from '../transfer/transfer-contract.ts';
import type { EventOf } from './call-event.ts';
import { type CallOutcome, callOutcomes, reasonCodes } from './call-words.ts';
import { callEventEnvelope } from './definitions.ts';
import { type SelectedEventType, selectedEventTypes } from './notify-events.ts';
import { type Immutable, sequence, wordOf } from './schema.ts';
import { timestamp } from './timestamp.ts';

/** The fields of every notification, whatever its status. */
const envelope = {
  eventId: z.string().describe('the same across retries, so that receivers can de-duplicate'),
  sequence: sequence.describe("1, 2, … over this call's notifications"),
  timestamp: timestamp.describe('when it happened, not when it was sent'),
  callId: z.string(),
  sid: z.string(),
  botId: z.string(),
  conversationId: z.string(),
};

export const notificationSchema = z.object({
  ...envelope,
  status: z.enum(['Answered', 'Call-In-Progress', 'completed', 'Failed']),
  reason: z.string().describe('SIP status line, or what failed'),
  reasonCode: z.enum(reasonCodes),
  callConnectTime: timestamp
    .exactOptional()
    .describe('when the call was answered; absent if it was not'),
  ringDurationInMS: z.number().describe('from the first 18x to the answer, or to the end'),
  connectDurationInMS: z.number().describe('from the INVITE to the answer; 0 if never answered'),
  machineDetection: z
    .enum(amdEventNames)
    .exactOptional()
    .describe('the AMD event; on `completed`, the verdict'),
  amd: amdEvidence.exactOptional().describe('the evidence of an AMD event'),
  callDuration: z.number().int().exactOptional().describe('duration in seconds, on `completed`'),
  duration: z.string().exactOptional().describe('`callDuration` as a string'),
  callDurationMs: z
    .number()
    .int()
    .exactOptional()
    .describe('duration in milliseconds, not rounded'),
  callDisconnectTime: timestamp.exactOptional(),
  sessionId: z.string().exactOptional(),
  playedMs: z
    .number()
    .exactOptional()
    .describe('total duration of the audio of sounds that was sent'),
  voicemail: voicemailLeft
    .extend({ startedAt: timestamp.describe('when the message last started') })
    .exactOptional()
    .describe('the message that a plan left'),
  outcome: wordOf<CallOutcome>(callOutcomes)
    .optional()
    .describe('finer than `reasonCode`, on `completed` and `Failed`'),
  abandoned: z
    .literal(true)
    .exactOptional()
    .describe('a person answered, and nobody was connected within two seconds'),
  optedOut: z
    .literal(true)
    .exactOptional()
    .describe('the person asked not to be called any more, and the target is suppressed'),
  transfer: transferSummary
    .extend({
      answeredAt: timestamp.exactOptional().describe('absent if there was no answer'),
    })
    .exactOptional()
    .describe('the result of the last transfer, on `completed`; absent if there was no transfer'),
  quality: callQuality
    .exactOptional()
    .describe(
      'how the call sounded, on `completed`; absent if no audio arrived or the gateway died',
    ),
  recording: recordingSummary
    .exactOptional()
    .describe(
      'what became of the recording until now, on `completed`; absent if nothing was recorded',
    ),
  sipStatus: z.number().int().exactOptional(),
  ...endFactMembers,
  ...refusalMembers,
  notBefore: timestamp
    .exactOptional()
    .describe('when the rule would permit the call; absent if no time is known'),
  connectedIdentity: connectedIdentity.exactOptional(),
});
export type StatusNotification = Immutable<z.infer<typeof notificationSchema>>;

/** The data depends on the event type. See `callEvents`. */
export const eventNotificationSchema = z.object({
  ...envelope,
  status: z.literal('Event'),
  event: z
    .object({
      ...callEventEnvelope.shape,
      type: z.enum(selectedEventTypes),
      data: z.record(z.string(), z.unknown()),
    })
    .describe('the event as it is published on NATS; its `id` is the `eventId`'),
});

export type NotificationEnvelope = Immutable<z.infer<z.ZodObject<typeof envelope>>>;
export type EventNotification = NotificationEnvelope & {
  readonly status: 'Event';
  readonly event: { [Type in SelectedEventType]: EventOf<Type> }[SelectedEventType];
};
export type NotificationBody = StatusNotification | EventNotification;
