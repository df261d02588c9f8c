// Reads a history request. We validate the query (for GET and POST) and the body, and combine them.

import { z } from 'zod';
import { inRange } from '../../calls/contract/timestamp.ts';
import { invalidRequest, type MemberError } from '../../http/problem.ts';
import { jsonProblem } from '../../http/stored-json.ts';
import { channelTypes, defaultChannel, identifier, messageId } from './message-schema.ts';

const dayMs = 86_400_000;
const maxSpanMs = 7 * dayMs;
/** Clients that want to read further back must start from a date or a message. */
const maxSkip = 10_000;
const maxSessions = 100;
const maxTagsBytes = 8 * 1_024;

export const versions = { 1: { maxMessages: 100 }, 2: { maxMessages: 10_000 } } as const;
export type Version = keyof typeof versions;

export type HistoryQuery = {
  readonly userId: string | undefined;
  readonly sessionIds: readonly string[] | undefined;
  readonly callId: string | undefined;
  /** Undefined for any channel. */
  readonly channel: string | undefined;
  readonly from: Date | undefined;
  readonly before: Date | undefined;
  readonly tags: object | undefined;
  /** Whether to include messages of alert and action tasks. */
  readonly withTasks: boolean;
  readonly start: { readonly messageId: string; readonly direction: number } | undefined;
  readonly oldestFirst: boolean;
  readonly skipSessions: number;
  readonly limit: number;
  readonly include: {
    readonly traceId: boolean;
    readonly agentInfo: boolean;
    readonly secureForm: boolean;
  };
};

const date = inRange(
  z.union([z.iso.date(), z.iso.datetime()], {
    error: 'must be yyyy-mm-dd or yyyy-mm-ddThh:mm:ss.msZ',
  }),
);

/**
 * Fields that may appear in the query or the body. The only difference is the notation for numbers
 * and booleans.
 */
function members<Flag extends z.ZodType<boolean>>(
  version: Version,
  number: z.ZodNumber | z.ZodCoercedNumber<string>,
  flag: Flag,
) {
  const { maxMessages } = versions[version];
  const skip = number.int().min(0).max(maxSkip).exactOptional();
  return {
    userId: identifier.exactOptional().describe('user identifier: `createdBy` of the messages'),
    skip: skip.describe('number of sessions to skip, in the order of the messages'),
    offset: skip.describe('the same as `skip`'),
    limit: number
      .int()
      .min(1)
      .max(maxMessages)
      .exactOptional()
      .describe(`messages per page; default: ${maxMessages}`),
    channelType: z
      .enum(channelTypes)
      .exactOptional()
      .describe('default: `rtm`, or any channel if `callId` is given'),
    dateFrom: date
      .exactOptional()
      .describe(
        'the first day or instant, in UTC; without `dateTo`, the 7 days from it; with neither, the whole history',
      ),
    dateTo: date
      .exactOptional()
      .describe(
        'the last day or instant, in UTC, less than 7 days after `dateFrom`; without `dateFrom`, the 7 days up to it',
      ),
    getAgentsInfo: flag.exactOptional().describe('include agent info'),
    includeSecureForm: flag.exactOptional().describe('show form input submitted by the user'),
    callId: identifier.exactOptional().describe('a specific call (voice channels)'),
  };
}

function queryMembers(version: Version) {
  const flag = z.enum(['true', 'false']).transform((text) => text === 'true');
  return {
    ...members(version, z.coerce.number<string>(), flag),
    sessionId: identifier
      .transform((id) => [id])
      .exactOptional()
      .describe('a specific session'),
  };
}

/** Strict, because an unknown filter would silently select everything. */
export function getQuery(version: Version) {
  const known = queryMembers(version);
  return z.strictObject({
    ...known,
    userId: known.userId.unwrap(),
    includeSecureForm: version === 1 ? known.includeSecureForm : known.includeSecureForm.unwrap(),
  });
}

/**
 * For version 1, the specification allows a POST to use the GET's parameters. For version 2, it
 * doesn't say anything about that, so the query may only add fields that the body doesn't have.
 */
export function postQuery(version: Version) {
  const known = queryMembers(version);
  const { callId, includeSecureForm } = known;
  return z.strictObject(version === 1 ? known : { callId, includeSecureForm });
}

export function postBody(version: Version) {
  return z
    .strictObject({
      ...members(version, z.number(), z.boolean()),
      sessionId: z
        .array(identifier)
        .min(1)
        .max(maxSessions)
        .exactOptional()
        .describe('specific sessions'),
      forward: z
        .boolean()
        .exactOptional()
        .describe('`true` oldest first, `false` most recent first'),
      msgId: messageId
        .exactOptional()
        .describe(
          'the message to start from, which is included in the page; cannot be combined with dates',
        ),
      direction: z
        .number()
        .exactOptional()
        .describe(
          'messages relative to `msgId`: below 0 older ones, above 0 newer ones, 0 both; default: the direction of `forward`',
        ),
      includeTraceId: z
        .boolean()
        .exactOptional()
        .describe('include the trace identifier of incoming messages, which is kept for 30 days'),
      tags: z
        .looseObject({})
        .superRefine((value, context) => {
          const problem = jsonProblem(value, maxTagsBytes);
          if (problem !== undefined) context.addIssue({ code: 'custom', message: problem });
        })
        .exactOptional()
        .describe('only messages with these tags'),
    })
    .meta({
      id: `History${version === 1 ? '' : 'V2'}Request`,
      examples: [
        { userId: 'jane.doe@example.com', dateFrom: '2026-11-14', dateTo: '2026-11-20', limit: 50 },
        { msgId: 'ms-5a8f9f1e-7d5d-4c0c-9a50-2f6a7c1f3b42', direction: -1, includeTraceId: true },
      ],
    });
}

type Query = Partial<z.infer<ReturnType<typeof getQuery>>>;
type Body = z.infer<ReturnType<typeof postBody>>;

/** @throws ProblemError that lists every conflicting field */
export function toHistoryQuery(version: Version, query: Query, body: Body = {}): HistoryQuery {
  const given = { ...query, ...body };
  const errors = [...duplicateErrors(query, body), ...conflictErrors(given)];
  if (errors.length > 0) throw invalidRequest(errors);
  const { msgId, forward = false, tags = {} } = given;
  return {
    userId: given.userId,
    sessionIds: given.sessionId,
    callId: given.callId,
    channel: given.channelType ?? (given.callId === undefined ? defaultChannel : undefined),
    ...windowOf(given),
    tags: Object.keys(tags).length === 0 ? undefined : tags,
    withTasks: version === 1,
    start:
      msgId === undefined
        ? undefined
        : { messageId: msgId, direction: given.direction ?? (forward ? 1 : -1) },
    oldestFirst: forward,
    skipSessions: given.skip ?? given.offset ?? 0,
    limit: given.limit ?? versions[version].maxMessages,
    include: {
      traceId: given.includeTraceId === true,
      agentInfo: given.getAgentsInfo === true,
      secureForm: given.includeSecureForm === true,
    },
  };
}

function duplicateErrors(query: Query, body: Body): MemberError[] {
  return Object.keys(query)
    .filter((path) => Object.hasOwn(body, path))
    .map((path) => ({ path, message: 'is also in the query' }));
}

/** Returns an error for each field that is part of an invalid combination. */
function conflictErrors(given: Body): MemberError[] {
  const { skip, offset, msgId, direction, dateFrom, dateTo } = given;
  const dates = { dateFrom, dateTo };
  const dated = Object.entries(dates).flatMap(([name, date]) => (date === undefined ? [] : [name]));
  const spanMs = Date.parse(dateTo ?? '') - Date.parse(dateFrom ?? '');
  const named = (paths: readonly string[], message: string) =>
    paths.map((path) => ({ path, message }));
  return [
    ...(skip !== undefined && offset !== undefined && skip !== offset
      ? named(['skip', 'offset'], '`skip` and `offset` mean the same, but have different values')
      : []),
    ...(msgId !== undefined && dated.length > 0
      ? named(['msgId', ...dated], '`msgId` cannot be combined with `dateFrom` or `dateTo`')
      : []),
    ...(direction !== undefined && msgId === undefined
      ? named(['direction'], 'can only be used with `msgId`')
      : []),
    ...(spanMs < 0 ? named(['dateTo'], 'must not be before `dateFrom`') : []),
    ...(spanMs >= maxSpanMs ? named(['dateTo'], 'must be less than 7 days after `dateFrom`') : []),
  ];
}

function windowOf({ dateFrom, dateTo }: Body): Pick<HistoryQuery, 'from' | 'before'> {
  if (dateFrom === undefined && dateTo === undefined) return { from: undefined, before: undefined };
  const first = dateFrom === undefined ? undefined : Date.parse(dateFrom);
  // A date means the whole day, and an instant includes its last millisecond.
  const wholeMs = dateTo?.includes('T') === true ? 1 : dayMs;
  const end = dateTo === undefined ? undefined : Date.parse(dateTo) + wholeMs;
  return {
    from: new Date(first ?? (end ?? 0) - maxSpanMs),
    before: new Date(end ?? (first ?? 0) + maxSpanMs),
  };
}
