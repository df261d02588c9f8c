// The API's schemas for calls: the interactions view, timelines, contexts, and notifications with
// their attempts.

import { z } from 'zod';
import { callContextSchema as contextContract } from '../calls/contract/call-context.ts';
import { callEventTypes } from '../calls/contract/call-event.ts';
import {
  callFaults,
  callOutcomes,
  callStates,
  interactionStatuses,
} from '../calls/contract/call-words.ts';
import { inRange, timestamp } from '../calls/contract/timestamp.ts';
import { amdEvent, amdEventNames } from '../calls/detection/amd-event.ts';
import { callQuality } from '../calls/life/call-quality.ts';
import { connectedIdentity, endFactMembers } from '../calls/life/end-facts.ts';
import { ruleNames } from '../calls/rules/rule-words.ts';
import { identifier } from '../lib/ids.ts';
import { deliveryFailures } from '../notifier/delivery-rules.ts';
import { botId } from './dialout/dialout-schema.ts';
import { callRecordingSchema } from './recording-schemas.ts';

export const callIdPattern = /^call-[0-9A-Za-z-]{1,64}$/;

export const botParams = z.object({ botId });
export const callParams = z.object({ botId, callId: identifier.describe('`call-<uuid>`') });

export const filterInstant = inRange(
  z.iso.datetime({
    offset: true,
    abort: true,
    error: 'must be an ISO 8601 time with its zone, e.g. 2026-11-20T09:30:00Z',
  }),
);

type Period = { readonly from?: string | undefined; readonly to?: string | undefined };

/**
 * For `superRefine`: rejects a period that ends before it begins, which would silently match
 * nothing.
 */
export function checkPeriod({ from, to }: Period, context: z.RefinementCtx): void {
  if (from === undefined || to === undefined || Date.parse(from) <= Date.parse(to)) return;
  context.addIssue({ code: 'custom', path: ['to'], message: 'must not be before `from`' });
}

const summaryExample = {
  callId: 'call-0d9c4c52-9a63-4a7e-a7ab-0f1b5a9f7f10',
  sid: 'sid-6f1d2a4e-3c52-4f0e-8d0b-0a8c7f6d1e21',
  conversationId: '5a8f9f1e-7d5d-4c0c-9a50-2f6a7c1f3b42',
  botId: 'st-1b2c3d',
  state: 'ended',
  status: 'completed',
  target: 'tel:+12025550110',
  caller: '+15559876543',
  trunk: 'carrier',
  campaign: 'spring',
  machineDetection: 'detect',
  verdict: 'amd_machine_detected',
  verdictReason: 'long-greeting',
  beep: true as const,
  outcome: 'completed',
  sipStatus: 200,
  reason: '200 OK',
  reasonCode: 'Caller-disconnected',
  acceptedAt: '2026-11-20T09:00:00.000Z',
  ringingAt: '2026-11-20T09:00:01.040Z',
  answeredAt: '2026-11-20T09:00:04.120Z',
  endedAt: '2026-11-20T09:00:31.500Z',
};

const queuedExample = {
  callId: summaryExample.callId,
  sid: summaryExample.sid,
  conversationId: summaryExample.conversationId,
  botId: summaryExample.botId,
  state: 'queued',
  status: 'queued',
  target: summaryExample.target,
  caller: summaryExample.caller,
  trunk: summaryExample.trunk,
  campaign: summaryExample.campaign,
  machineDetection: summaryExample.machineDetection,
  acceptedAt: summaryExample.acceptedAt,
};

export const callSummarySchema = z
  .object({
    callId: z.string(),
    sid: z.string(),
    conversationId: z.string(),
    botId: z.string(),
    state: z.enum(callStates),
    status: z
      .enum(interactionStatuses)
      .describe('the Status column; `machineDetected` if `disconnect` ended the call'),
    queuePosition: z
      .number()
      .int()
      .min(1)
      .optional()
      .describe(
        'the call’s position among the calls that wait for its trunk; 1 is next. Only present while the call is `queued`',
      ),
    waitsFor: z
      .object({ rule: z.enum(ruleNames), until: timestamp })
      .optional()
      .describe(
        'the calling rule that the call waits for, and when it is checked again. Such a call has no `queuePosition`, and doesn’t count towards `callsAtOnce`',
      ),
    target: z.string(),
    caller: z.string(),
    trunk: z.string().optional(),
    campaign: z.string().optional().describe('`campaign` of the request'),
    machineDetection: z.string(),
    verdict: z
      .enum(amdEventNames)
      .optional()
      .describe('the result of detection; it may change during the call'),
    verdictReason: z
      .string()
      .optional()
      .describe('reason for the verdict: the `amd.reason` of its event, e.g. `fax-tone`'),
    beep: z.literal(true).optional().describe("present if a machine's beep was heard"),
    outcome: z.enum(callOutcomes).optional().describe('present once the call has ended'),
    fault: z
      .enum(callFaults)
      .optional()
      .describe(
        'the party that caused the failure; `caller` is the application that requested the call. Absent if the call completed',
      ),
    sipStatus: z.number().int().optional(),
    reason: z.string().optional(),
    reasonCode: z.string().optional(),
    acceptedAt: timestamp,
    ringingAt: timestamp.optional(),
    answeredAt: timestamp.optional(),
    endedAt: timestamp.optional(),
    ...endFactMembers,
    rule: z
      .enum(ruleNames)
      .optional()
      .describe('the calling rule that ended the call; only if `outcome` is `not-permitted`'),
    notBefore: timestamp.optional().describe('when that rule would permit the call, if known'),
    connectedIdentity: connectedIdentity.optional(),
    quality: callQuality
      .optional()
      .describe('how the call sounded; absent until its end, and if no audio arrived'),
  })
  .meta({ id: 'CallSummary', examples: [summaryExample] });

export const callPageSchema = z
  .object({
    calls: z.array(callSummarySchema).readonly().describe('newest first'),
    nextCursor: z
      .string()
      .optional()
      .describe(
        'absent on the last page. A page with fewer calls than `limit`, or without any, may have one: a request only searches a bounded number of calls, and the next request continues',
      ),
    searched: z
      .object({ from: timestamp.optional(), to: timestamp.optional() })
      .describe(
        'the period that this request has searched: the page has every matching call that was accepted in it. Without `from`, it reaches back to the oldest call; without `to`, up to the newest',
      ),
  })
  .meta({
    id: 'CallPage',
    examples: [
      {
        calls: [summaryExample],
        nextCursor: 'MTc2MzYyODQwMDAwMC5jYWxs',
        searched: { from: summaryExample.acceptedAt, to: '2026-11-21T00:00:00.000Z' },
      },
    ],
  });

export const callDetailsSchema = callSummarySchema
  .extend({
    metadata: z.record(z.string(), z.unknown()).readonly(),
    recording: callRecordingSchema.optional().describe('absent if the call has not been recorded'),
    timeline: z
      .array(
        z.object({
          eventId: z.string(),
          eventSequence: z.number().int(),
          type: z.string().describe(callEventTypes.join(', ')),
          time: timestamp,
          data: z
            .unknown()
            .describe(
              'depends on the type. Each gateway that was tried has its own `dialing`, with `trunk`, `gateway` and `attempt`. In `dialing` and in the last event, `failedAttempts` lists the earlier attempts with `gateway`, `sipStatus`, `reason` and `durationMs`',
            ),
        }),
      )
      .readonly()
      .describe('all the call’s events, in order; the newest may appear with a short delay'),
  })
  .meta({
    id: 'CallDetails',
    examples: [
      {
        ...summaryExample,
        metadata: { customer: '4711' },
        timeline: [
          {
            eventId: 'evt-0d9c4c52-9a63-4a7e-a7ab-0f1b5a9f7f10-1',
            eventSequence: 1,
            type: 'queued',
            time: '2026-11-20T09:00:00.000Z',
            data: {},
          },
        ],
      },
      {
        ...queuedExample,
        queuePosition: 3,
        metadata: {},
        timeline: [],
      },
    ],
  });

export const callEndSchema = z
  .object({
    callId: z.string(),
    state: z
      .enum(['ending', 'ended'])
      .describe(
        '`ending`: the call is being cancelled or hung up, and its end will be notified. `ended`: the call had already ended',
      ),
  })
  .meta({ id: 'CallEnd', examples: [{ callId: summaryExample.callId, state: 'ending' }] });

/** Loose, so that we pass on fields that a later version adds to an event. */
const documentedAmdEvent = z
  .looseObject(amdEvent.shape)
  .meta({ id: 'AmdEvent', description: 'An AMD event with its evidence.' });

const { amdInfo, amd } = contextContract.shape.session.shape.UserSession.shape;

export const callContextSchema = contextContract
  .extend({
    session: z.object({
      UserSession: z.object({
        amd: amd.readonly(),
        amdInfo: amdInfo.extend({
          amdEvents: z.array(documentedAmdEvent).readonly().optional(),
        }),
      }),
    }),
    metadata: contextContract.shape.metadata.readonly(),
  })
  .meta({
    id: 'CallContext',
    description: 'A call’s context, which bot flows read.',
    examples: [
      {
        session: {
          UserSession: {
            amd: ['amd_human_detected', 'amd_stopped'],
            amdInfo: {
              amdEvents: [
                {
                  event: 'amd_human_detected',
                  reason: 'short-greeting',
                  elapsedMs: 1_260,
                  words: 1,
                  confidence: 0.93,
                },
                { event: 'amd_stopped', reason: 'human', elapsedMs: 6_260 },
              ],
              amdRingDurationInMs: 3_080,
              amdConnectDurationInMs: 4_100,
            },
          },
        },
        metadata: { customer: '4711' },
      },
    ],
  });

export const notificationLogSchema = z
  .object({
    notifications: z
      .array(
        z.object({
          eventId: z.string(),
          sequence: z.number().int(),
          state: z.enum(['pending', 'delivered', 'failed']),
          createdAt: timestamp,
          deliveredAt: timestamp.optional(),
          failedAt: timestamp.optional().describe('present if it is a dead letter'),
          failure: z.enum(deliveryFailures).optional(),
          nextAttemptAt: timestamp
            .optional()
            .describe(
              'when the next attempt is made for one of the call’s notifications, which are sent in order; only if this one is pending, and absent while an attempt is under way',
            ),
          body: z.unknown().describe('the body exactly as signed and sent'),
          attempts: z
            .array(
              z.object({
                attempt: z.number().int(),
                startedAt: timestamp,
                durationMs: z.number(),
                responseStatus: z.number().int().optional(),
                error: z.string().optional(),
                delivered: z.boolean(),
              }),
            )
            .readonly()
            .describe('kept for 7 days'),
          replays: z
            .array(
              z.object({
                replayedAt: timestamp,
                by: z.string().describe('id of the app that replayed it'),
              }),
            )
            .readonly()
            .describe('every replay; kept for 7 days'),
        }),
      )
      .readonly(),
  })
  .meta({
    id: 'NotificationLog',
    examples: [
      {
        notifications: [
          {
            eventId: 'evt-0d9c4c52-9a63-4a7e-a7ab-0f1b5a9f7f10-end',
            sequence: 2,
            state: 'delivered',
            createdAt: '2026-11-20T09:00:31.510Z',
            deliveredAt: '2026-11-20T09:00:31.580Z',
            body: { status: 'completed', reasonCode: 'Caller-disconnected' },
            attempts: [
              {
                attempt: 1,
                startedAt: '2026-11-20T09:00:31.520Z',
                durationMs: 58,
                responseStatus: 204,
                delivered: true,
              },
            ],
            replays: [],
          },
        ],
      },
    ],
  });
