// The filters of a list of calls: the query's schema, and its translation into a `CallFilter`.

import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { callOutcomes, callStates, interactionStatuses } from '../calls/contract/call-words.ts';
import { inRange } from '../calls/contract/timestamp.ts';
import { amdEventNames } from '../calls/detection/amd-event.ts';
import { type NumberReading, readingFor } from '../calls/target/number-reading.ts';
import { parseTarget } from '../calls/target/parse-target.ts';
import { invalidRequest } from '../http/problem.ts';
import type {
  CallersRequest,
  CallFilter,
  SummaryPeriod,
  SummaryRequest,
} from '../interactions/call-queries.ts';
import { identifier, identifierUpTo, minUuidStartLength, startsUuid } from '../lib/ids.ts';
import { beginningOfDay, dayAfter, dayAt, isTimeZone } from '../lib/local-days.ts';
import { slotMs } from '../store/calls/call-slots.ts';
import { checkPeriod, filterInstant } from './call-schemas.ts';
import { campaignName, idempotencyKey } from './dialout/dialout-schema.ts';

const callIdPrefix = z
  .string()
  .refine(isCallIdPrefix, {
    message: `must be \`call-\` and the first ${minUuidStartLength} characters of the id, or more`,
  })
  .meta({ examples: ['call-0d9c'] });

function isCallIdPrefix(text: string): boolean {
  const start = text.slice('call-'.length);
  return text.startsWith('call-') && start.length >= minUuidStartLength && startsUuid(start);
}

const timeZone = z
  .string()
  .max(64)
  .refine(isTimeZone, 'must be an IANA time zone, e.g. Europe/Berlin')
  .meta({ examples: ['Europe/Berlin'] });

const day = inRange(z.iso.date({ abort: true, error: 'must be a day as YYYY-MM-DD' })).meta({
  examples: ['2026-11-24'],
});

/** More members would only narrow a list that is short already. */
const maxMetadataMembers = 8;
const metadata = z
  .record(identifier, identifierUpTo(512))
  .refine(
    (members) => Object.keys(members).length <= maxMetadataMembers,
    `must be at most ${maxMetadataMembers} members`,
  );

/** The period of a list or a summary: `day`, or `from` and `to`. */
const periodMembers = {
  from: filterInstant.optional().describe('accepted at this instant or later'),
  to: filterInstant
    .optional()
    .describe('accepted before this instant, which must not be before `from`'),
  day: day
    .optional()
    .describe('accepted on this day of `timeZone`; cannot be combined with `from` and `to`'),
  timeZone: timeZone.optional().describe('IANA time zone of `day`. Default: UTC'),
};

type PeriodQuery = {
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  readonly day?: string | undefined;
  readonly timeZone?: string | undefined;
};

function checkDay(query: PeriodQuery, context: z.RefinementCtx): void {
  checkPeriod(query, context);
  if (query.day !== undefined && (query.from ?? query.to) !== undefined) {
    const message = 'cannot be combined with `from` and `to`';
    context.addIssue({ code: 'custom', path: ['day'], message });
  }
}

/** The filters that lists and summaries share. */
const resultMembers = {
  status: z
    .enum(interactionStatuses)
    .optional()
    .describe('value of the Status column of the interactions view'),
  outcome: z.enum(callOutcomes).optional(),
  verdict: z.enum(amdEventNames).optional().describe('the result of detection'),
};

export const maxPageCalls = 200;
const defaultPageCalls = 50;

/** Strict, because an unknown filter would silently list everything. */
export const listQuery = z
  .strictObject({
    limit: z.coerce
      .number()
      .int()
      .min(1)
      .max(maxPageCalls)
      .optional()
      .describe(
        `calls in one page. Default: ${defaultPageCalls}, or with \`format=csv\` the whole list`,
      ),
    cursor: z.string().min(1).max(256).optional().describe('`nextCursor` of the previous page'),
    format: z
      .enum(['json', 'csv'])
      .optional()
      .describe('the format of the response; takes precedence over `Accept`'),
    ...resultMembers,
    state: z.enum(callStates).optional(),
    number: z
      .string()
      .max(64)
      .optional()
      .describe(
        'the callee’s number, written as in a dial-out request, with or without `tel:`. A number without `+` is read with the settings of the app. Also finds `sip:` targets with this number as their user',
      )
      .meta({ examples: ['+12025550110'] }),
    campaign: campaignName.optional().describe('`campaign` of the request'),
    metadata: metadata
      .optional()
      .describe(
        'members of the call’s `metadata` and their values, e.g. `metadata[orderId]=17`. Numbers and booleans are compared as text',
      ),
    idempotencyKey: idempotencyKey.optional().describe('`Idempotency-Key` of the request'),
    callIdPrefix: callIdPrefix.optional().describe('the first characters of the id'),
    ...periodMembers,
  })
  .superRefine(checkDay)
  .refine((query) => query.timeZone === undefined || query.day !== undefined, {
    path: ['timeZone'],
    message: 'needs `day`',
  });
export type ListQuery = z.output<typeof listQuery>;

/**
 * Gathers `metadata[name]=value` into one member, before the query is checked. OpenAPI calls this
 * style `deepObject`.
 */
export async function gatherMetadata(request: FastifyRequest): Promise<void> {
  const members: [string, unknown][] = [];
  const others: [string, unknown][] = [];
  for (const [name, value] of Object.entries(request.query as Record<string, unknown>)) {
    const member = /^metadata\[([^[\]]+)\]$/.exec(name)?.[1];
    if (member === undefined) others.push([name, value]);
    else members.push([member, value]);
  }
  if (members.length === 0) return;
  request.query = { ...Object.fromEntries(others), metadata: Object.fromEntries(members) };
}

/** @throws ProblemError if the number cannot be dialled */
export function toFilter(query: ListQuery, app: NumberReading): CallFilter {
  const { cursor, status, state, outcome, verdict, number, campaign } = query;
  const { limit = defaultPageCalls, idempotencyKey: key, callIdPrefix: prefix } = query;
  const period = periodOf(query);
  return {
    limit,
    ...(cursor === undefined ? {} : { cursor }),
    ...(status === undefined ? {} : { status }),
    ...(state === undefined ? {} : { state }),
    ...(outcome === undefined ? {} : { outcome }),
    ...(verdict === undefined ? {} : { verdict }),
    ...(number === undefined ? {} : { number: digitsOf(number, app) }),
    ...(campaign === undefined ? {} : { campaign }),
    ...(query.metadata === undefined ? {} : { metadata: query.metadata }),
    ...(key === undefined ? {} : { idempotencyKey: key }),
    ...(prefix === undefined ? {} : { callIdPrefix: prefix }),
    ...(period.from === undefined ? {} : { acceptedFrom: period.from }),
    ...(period.to === undefined ? {} : { acceptedTo: period.to }),
  };
}

/** Reads a number exactly as a dial-out request of this app does. */
function digitsOf(text: string, app: NumberReading): string {
  // In a query, an unescaped `+` means a space.
  const written = text.replace(/^ (?=\d)/, '+');
  const uri = /^tel:/i.test(written) ? written.replace(/^tel: /i, 'tel:+') : `tel:${written}`;
  const result = parseTarget(uri, readingFor({}, app));
  if (!result.ok) throw invalidRequest([{ path: 'number', message: result.message }]);
  if (result.target.kind === 'tel') return result.target.number;
  throw invalidRequest([{ path: 'number', message: 'must be a global number' }]);
}

function periodOf({ from, to, day: only, timeZone: zone = 'UTC' }: PeriodQuery): {
  readonly from: Date | undefined;
  readonly to: Date | undefined;
} {
  if (only !== undefined) {
    return { from: beginningOfDay(only, zone), to: beginningOfDay(dayAfter(only), zone) };
  }
  return {
    from: from === undefined ? undefined : new Date(from),
    to: to === undefined ? undefined : new Date(to),
  };
}

/** The longest period of a summary: a quarter of a year. */
const maxSummaryDays = 92;
const dayMs = 86_400_000;

const onQuarter = (text: string | undefined): boolean =>
  text === undefined || Date.parse(text) % slotMs === 0;
const quarterMessage = 'must be a full quarter of an hour, e.g. 2026-11-24T08:15:00Z';

const totalsMembers = {
  ...periodMembers,
  day: periodMembers.day.describe(
    'accepted on this day of `timeZone`. Default: today, unless `from` and `to` are given',
  ),
  timeZone: timeZone
    .default('UTC')
    .describe('IANA time zone, which decides when days begin. Default: UTC'),
};

function checkTotals(query: PeriodQuery, context: z.RefinementCtx, maxDays: number): void {
  checkDay(query, context);
  const { from, to } = query;
  const refuse = (path: string, message: string): void =>
    context.addIssue({ code: 'custom', path: [path], message });
  if (!onQuarter(from)) refuse('from', quarterMessage);
  if (!onQuarter(to)) refuse('to', quarterMessage);
  if ((from === undefined) !== (to === undefined))
    refuse('from', '`from` and `to` need each other');
  const lengthMs = Date.parse(to ?? '') - Date.parse(from ?? '');
  // The day on which daylight saving time ends is an hour longer.
  if (lengthMs > maxDays * dayMs + 3_600_000)
    refuse('to', `must be at most ${maxDays} days after \`from\``);
}

/** A summary by quarters of an hour has up to 97 entries for each day. */
const maxQuartersDays = 8;

export const summaryQuery = z
  .strictObject({
    ...totalsMembers,
    ...resultMembers,
    quarters: z
      .enum(['true', 'false'])
      .optional()
      .describe(`also by quarter of an hour. The period is then at most ${maxQuartersDays} days`),
  })
  .superRefine((query, context) =>
    checkTotals(query, context, query.quarters === 'true' ? maxQuartersDays : maxSummaryDays),
  );

/** As long as the totals of caller IDs are kept. */
const maxCallersDays = 31;

/** Bounds the response: there may be 500 caller IDs. */
const maxDailyCallersDays = 14;

export const callersQuery = z
  .strictObject({
    ...totalsMembers,
    days: z
      .enum(['true', 'false'])
      .optional()
      .describe(`also by day. The period is then at most ${maxDailyCallersDays} days`),
  })
  .superRefine((query, context) =>
    checkTotals(query, context, query.days === 'true' ? maxDailyCallersDays : maxCallersDays),
  );

export function toCallersRequest(query: z.output<typeof callersQuery>, now: Date): CallersRequest {
  return { ...toSummaryPeriod(query, now), withDays: query.days === 'true' };
}

export function toSummaryRequest(query: z.output<typeof summaryQuery>, now: Date): SummaryRequest {
  const { outcome, status, verdict } = query;
  const filter = {
    ...(outcome === undefined ? {} : { outcome }),
    ...(status === undefined ? {} : { status }),
    ...(verdict === undefined ? {} : { verdict }),
  };
  return { ...toSummaryPeriod(query, now), filter, withQuarters: query.quarters === 'true' };
}

function toSummaryPeriod(
  query: Omit<z.output<typeof callersQuery>, 'days'>,
  now: Date,
): SummaryPeriod {
  const { timeZone: zone } = query;
  const { from, to } = periodOf(query);
  if (from !== undefined && to !== undefined) return { from, to, timeZone: zone };
  const today = periodOf({ day: dayAt(now, zone), timeZone: zone });
  return { from: today.from ?? now, to: today.to ?? now, timeZone: zone };
}
