// The schemas for dead letters, i.e. notifications that the gateway gave up on.

import { z } from 'zod';
import { timestamp } from '../calls/contract/timestamp.ts';
import { identifier } from '../lib/ids.ts';
import { deliveryFailures } from '../notifier/delivery-rules.ts';
import { checkPeriod, filterInstant } from './call-schemas.ts';
import { botId } from './dialout/dialout-schema.ts';

const failure = z
  .enum(deliveryFailures)
  .describe(
    '`expired`: not accepted within 24 hours; `gone`: the receiver responded with 410 to this notification or another one for the call; `forbidden`: the gateway may not, or cannot, send to this URL',
  );

const period = {
  from: filterInstant.optional().describe('given up at this instant or later'),
  to: filterInstant
    .optional()
    .describe('given up before this instant, which must not be before `from`'),
};

/** Strict, because an unknown filter would silently list everything. */
export const deadLetterQuery = z
  .strictObject({
    state: z
      .enum(['failed'])
      .default('failed')
      .describe('`failed` (dead letters) is the only state that can be listed here'),
    limit: z.coerce.number().int().min(1).max(200).default(50).describe('dead letters in one page'),
    cursor: z.string().min(1).max(256).optional().describe('`nextCursor` of the previous page'),
    callId: identifier.optional(),
    failure: failure.optional(),
    ...period,
  })
  .superRefine(checkPeriod);

const example = {
  eventId: 'evt-0d9c4c52-9a63-4a7e-a7ab-0f1b5a9f7f10-end',
  callId: 'call-0d9c4c52-9a63-4a7e-a7ab-0f1b5a9f7f10',
  botId: 'st-1b2c3d',
  sequence: 2,
  state: 'failed',
  failure: 'expired',
  createdAt: '2026-11-20T09:00:31.510Z',
  failedAt: '2026-11-21T09:00:31.612Z',
  attempts: 29,
  lastStatus: 503,
  body: { status: 'completed', reasonCode: 'Caller-disconnected' },
};

export const deadLetterPageSchema = z
  .object({
    notifications: z
      .array(
        z.object({
          eventId: z.string(),
          callId: z.string(),
          botId: z.string(),
          sequence: z
            .number()
            .int()
            .optional()
            .describe(
              'absent for a POST to `recording.notifyurl`, which is outside the call’s order',
            ),
          state: z.enum(['failed']),
          failure,
          createdAt: timestamp,
          failedAt: timestamp,
          attempts: z.number().int(),
          lastStatus: z
            .number()
            .int()
            .optional()
            .describe('the receiver’s response status for the last attempt'),
          lastError: z
            .string()
            .optional()
            .describe('error of the last attempt, if it got no response'),
          body: z.unknown().describe('the body exactly as signed and sent'),
        }),
      )
      .readonly()
      .describe('latest failures first'),
    nextCursor: z.string().optional().describe('absent on the last page'),
  })
  .meta({
    id: 'DeadLetterPage',
    examples: [{ notifications: [example], nextCursor: 'MTc2MzYyODQwMDAwMC5ldnQ' }],
  });

export const notificationParams = z.object({
  botId,
  eventId: identifier.describe('`eventId` of the notification'),
});

export const replayedSchema = z
  .object({
    eventId: z.string(),
    callId: z.string(),
    state: z.enum(['pending', 'delivered', 'failed']).describe('state after this request'),
    replayed: z
      .boolean()
      .describe(
        'false if nothing changed, because the notification has been delivered or is still waiting to be sent',
      ),
  })
  .meta({
    id: 'ReplayedNotification',
    examples: [
      { eventId: example.eventId, callId: example.callId, state: 'pending', replayed: true },
    ],
  });

export const replaySelectionSchema = z
  .strictObject({
    callId: identifier
      .optional()
      .describe('replays all dead letters of this call; cannot be combined with `from` or `to`'),
    ...period,
  })
  .superRefine(checkPeriod)
  .superRefine(({ callId, ...times }, context) => {
    const given = Object.entries(times).flatMap(([name, time]) =>
      time === undefined ? [] : [name],
    );
    if (callId === undefined && given.length === 0) {
      context.addIssue({ code: 'custom', message: 'must name a callId, from or to' });
    }
    for (const name of callId === undefined ? [] : given) {
      context.addIssue({
        code: 'custom',
        path: [name],
        message: 'cannot be combined with `callId`',
      });
    }
  })
  .meta({
    id: 'ReplaySelection',
    examples: [{ from: '2026-11-20T09:00:00Z' }, { callId: example.callId }],
  });

export const replayResultSchema = z
  .object({
    replayed: z.number().int().describe('number of dead letters that will be sent again'),
    more: z
      .boolean()
      .describe(
        'true if there may be more than the 500 that one request replays; send the same request again',
      ),
  })
  .meta({ id: 'ReplayResult', examples: [{ replayed: 12, more: false }] });
