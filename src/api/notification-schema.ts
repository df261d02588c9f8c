// The body that notify URLs receive, for the OpenAPI document only: the notifier builds it, and a test holds the two together.

import { z } from 'zod';
import { amdEventNames } from '../calls/call-types.ts';
import { amdEvidenceMembers } from './amd-evidence-schema.ts';
import { timestamp } from './timestamp.ts';

export const notificationSchema = z
  .object({
    eventId: z.string().describe('constant across retries: what receivers de-duplicate by'),
    sequence: z.number().int().describe("1, 2, … over this call's notifications"),
    timestamp: timestamp.describe('when it happened, not when it was sent'),
    callId: z.string(),
    sid: z.string(),
    botId: z.string(),
    conversationId: z.string(),
    status: z.enum(['Answered', 'Call-In-Progress', 'completed', 'Failed']),
    reason: z.string().describe('SIP status line, or what failed'),
    reasonCode: z.enum([
      'OK',
      'Busy here',
      'Service Unavailable',
      'Temporarily Unavailable',
      'Caller-disconnected',
      'Bot-disconnected',
      'Gateway-disconnected',
    ]),
    callConnectTime: timestamp
      .optional()
      .describe('instant of the answer; absent where there was none'),
    ringDurationInMS: z.number().describe('first 18x to the answer, or to the end'),
    connectDurationInMS: z.number().describe('INVITE to answer; 0 when never answered'),
    machineDetection: z
      .enum(amdEventNames)
      .optional()
      .describe('the AMD event; on `completed` the verdict'),
    amd: z.looseObject(amdEvidenceMembers).optional().describe('what an AMD event rests on'),
    callDuration: z.number().int().optional().describe('seconds, on `completed`'),
    duration: z.string().optional().describe('the same as a string'),
    callDurationMs: z.number().int().optional().describe('the same in milliseconds, not rounded'),
    callDisconnectTime: timestamp.optional(),
    sessionId: z.string().optional(),
    outcome: z.string().optional().describe('finer than `reasonCode`, on `completed` and `Failed`'),
    sipStatus: z.number().int().optional(),
  })
  .meta({
    id: 'CallNotification',
    examples: [
      {
        eventId: 'evt-0d9c4c52-9a63-4a7e-a7ab-0f1b5a9f7f10-end',
        sequence: 1,
        timestamp: '2026-11-20T09:00:02.120Z',
        callId: 'call-0d9c4c52-9a63-4a7e-a7ab-0f1b5a9f7f10',
        sid: 'sid-6f1d2a4e-3c52-4f0e-8d0b-0a8c7f6d1e21',
        botId: 'st-1b2c3d',
        conversationId: '5a8f9f1e-7d5d-4c0c-9a50-2f6a7c1f3b42',
        status: 'Failed',
        reason: '486 Busy Here',
        reasonCode: 'Busy here',
        ringDurationInMS: 0,
        connectDurationInMS: 0,
        callDisconnectTime: '2026-11-20T09:00:02.120Z',
        outcome: 'busy',
        sipStatus: 486,
      },
    ],
  });
