// The schema of a summary of calls.

import { z } from 'zod';
import { callOutcomes } from '../calls/contract/call-words.ts';
import { timestamp } from '../calls/contract/timestamp.ts';

const count = z.number().int().min(0);

const counts = {
  accepted: count.describe('all calls of the period, also those that have not ended'),
  answered: count,
  short: count.describe('ended calls that were over within 6 s of the answer'),
  people: count.describe('ended calls with the verdict `amd_human_detected`'),
  machines: count.describe(
    'ended calls with the verdict `amd_machine_detected` or `amd_tone_detected`',
  ),
  minutes: z.number().min(0).describe('from the answer to the end, over all ended calls'),
  outcomes: z
    .partialRecord(z.enum(callOutcomes), count)
    .describe('ended calls by outcome; outcomes without calls are left out'),
};

const exampleCounts = {
  accepted: 1_200,
  answered: 700,
  short: 30,
  people: 400,
  machines: 270,
  minutes: 512.25,
  outcomes: { completed: 430, machine: 270, busy: 200, 'no-answer': 300 },
};

export const callsSummarySchema = z
  .object({
    from: timestamp,
    to: timestamp,
    timeZone: z.string(),
    total: z.object(counts),
    bots: z
      .array(z.object({ botId: z.string(), ...counts }))
      .readonly()
      .describe('the bot with the most calls first'),
    trunks: z
      .array(z.object({ trunk: z.string().optional(), ...counts }))
      .readonly()
      .describe(
        'the trunk with the most calls first; calls without a trunk have an entry without one',
      ),
    days: z
      .array(z.object({ day: z.string().describe('`YYYY-MM-DD` in `timeZone`'), ...counts }))
      .readonly()
      .describe('every day of the period, in order'),
    quarters: z
      .array(z.object({ from: timestamp, ...counts }))
      .readonly()
      .optional()
      .describe(
        'only with `quarters=true`: each quarter of an hour that has calls, in order, by its beginning',
      ),
  })
  .meta({
    id: 'CallsSummary',
    description: 'A call belongs to the time at which it was accepted.',
    examples: [
      {
        from: '2026-11-23T23:00:00.000Z',
        to: '2026-11-24T23:00:00.000Z',
        timeZone: 'Europe/Berlin',
        total: exampleCounts,
        bots: [{ botId: 'st-1b2c3d', ...exampleCounts }],
        trunks: [{ trunk: 'carrier', ...exampleCounts }],
        days: [{ day: '2026-11-24', ...exampleCounts }],
      },
    ],
  });

const callerCounts = {
  accepted: counts.accepted,
  answered: count,
  short: counts.short,
  blocked: count.describe('ended calls with the outcome `blocked`'),
};

export const callersSummarySchema = z
  .object({
    from: timestamp,
    to: timestamp,
    timeZone: z.string(),
    callers: z
      .array(
        z.object({
          caller: z.string().describe('the caller ID, without a leading `+`'),
          ...callerCounts,
          blockedShare: z.number().min(0).max(1).describe('`blocked` as a share of `accepted`'),
          days: z
            .array(z.object({ day: z.string(), ...callerCounts }))
            .readonly()
            .optional()
            .describe('only with `days=true`: the days of `timeZone` that have calls, in order'),
        }),
      )
      .readonly()
      .describe('at most 500: those with the most blocked calls first, then with the most calls'),
    more: z.literal(true).optional().describe('present if more caller IDs have calls'),
  })
  .meta({
    id: 'CallersSummary',
    description: 'Calls by caller ID. A call belongs to the time at which it was accepted.',
    examples: [
      {
        from: '2026-11-24T00:00:00.000Z',
        to: '2026-11-25T00:00:00.000Z',
        timeZone: 'UTC',
        callers: [
          {
            caller: '15559876543',
            ...{ accepted: 400, answered: 90, short: 4, blocked: 80, blockedShare: 0.2 },
          },
        ],
      },
    ],
  });
