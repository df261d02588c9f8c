// Lists calls as JSON or CSV, and sums them up: for one bot, or for all bots of an app.

import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import {
  type ApiInstance,
  acceptedType,
  botRoute,
  type Clients,
  type ContentType,
} from '../http/http.ts';
import { badCursor } from '../http/problem.ts';
import { authenticated, type ProblemStatus, responses } from '../http/route-schema.ts';
import { csvHeader, csvOfCall } from '../interactions/call-csv.ts';
import type {
  AppScope,
  CallFilter,
  CallPage,
  CallQueries,
  CallScope,
} from '../interactions/call-queries.ts';
import { appScopeOf, botScopeOf } from './app-scope.ts';
import {
  callersQuery,
  gatherMetadata,
  type ListQuery,
  listQuery,
  maxPageCalls,
  summaryQuery,
  toCallersRequest,
  toFilter,
  toSummaryRequest,
} from './call-filters.ts';
import { botParams, callPageSchema } from './call-schemas.ts';
import { callersSummarySchema, callsSummarySchema } from './call-summary-schema.ts';
import type { ApiServices } from './services.ts';

export type CallListDependencies = {
  readonly services: Pick<ApiServices, 'bots' | 'calls'>;
  readonly clients: Clients;
};

const listTypes: readonly ContentType[] = ['application/json', 'text/csv'];

const listDescription =
  'A request searches a bounded number of calls, so `nextCursor` is what says whether the list goes on, not the number of calls. `searched` names the period. With `Accept: text/csv` or `format=csv`, the response is a CSV file of the whole list, up to 100,000 calls or one minute of searching. If it stops there, its last line is `# nextCursor=` and the cursor.';

const summaryDescription =
  'The gateway keeps these totals as calls end, so a summary costs the same however many calls there are. `from` and `to` must be quarters of an hour, at most 92 days apart. Without them, and without `day`, the summary is of today. `quarters=true` adds each quarter of an hour, for at most 8 days: every time zone begins its hours and days on one. With `outcome`, `verdict` or `status`, only these calls are counted. Totals are kept for 400 days.';

const callersDescription =
  'The share of a caller ID’s calls that carriers blocked shows the number’s reputation. `from` and `to` must be quarters of an hour, at most 31 days apart. Without them, and without `day`, the response is about today. `days=true` adds the counts of each day, for at most 14 days. These totals are kept for 31 days.';

export function registerCallLists(server: ApiInstance, deps: CallListDependencies): void {
  const { clients, services } = deps;
  const problems = [400, 401, 403, 404, 406] as const;
  registerPair(server, deps, {
    ...{ prefix: '/api/public/bot/:botId/calls', params: botParams, problems },
    scopeOf: (request) => botScopeOf(clients, request),
    list: {
      operationId: 'listCalls',
      summary: 'List a bot’s calls, newest first (the interactions view)',
    },
    sum: { operationId: 'summarizeCalls', summary: 'Sum up a bot’s calls' },
    callers: {
      operationId: 'summarizeCallers',
      summary: 'Count a bot’s calls, and those that carriers blocked, by caller ID',
    },
  });
  registerPair(server, deps, {
    ...{ prefix: '/api/public/calls', problems: [400, 401, 403, 406] },
    scopeOf: (request) => appScopeOf(services.bots, clients.appOf(request)),
    list: {
      operationId: 'listCallsOfApp',
      summary: 'List the calls of all the app’s bots, newest first (the interactions view)',
    },
    sum: { operationId: 'summarizeCallsOfApp', summary: 'Sum up the calls of all the app’s bots' },
    callers: {
      operationId: 'summarizeCallersOfApp',
      summary:
        'Count the calls of all the app’s bots, and those that carriers blocked, by caller ID',
    },
  });
}

type Named = { readonly operationId: string; readonly summary: string };

type Pair = {
  readonly prefix: string;
  readonly params?: typeof botParams;
  readonly problems: readonly ProblemStatus[];
  readonly scopeOf: (request: FastifyRequest) => CallScope | Promise<AppScope>;
  readonly list: Named;
  readonly sum: Named;
  readonly callers: Named;
};

function registerPair(
  server: ApiInstance,
  { services: { calls }, clients }: CallListDependencies,
  { prefix, params, problems, scopeOf, list, sum, callers }: Pair,
): void {
  const access = params === undefined ? { scope: 'Dialout' as const } : botRoute('Dialout');
  const common = { tags: ['calls'], ...(params === undefined ? {} : { params }), ...authenticated };

  server.route({
    method: 'GET',
    url: prefix,
    onRequest: clients.require({ ...access, contentTypes: listTypes }),
    config: { responseTimeoutMs: maxCsvMs + lastPageMs },
    preValidation: gatherMetadata,
    schema: {
      ...{ ...list, ...common, description: listDescription, querystring: listQuery },
      response: listResponses(problems),
    },
    handler: async (request, reply) => {
      const filter = toFilter(request.query, clients.appOf(request));
      const search: Search = { calls, scope: await scopeOf(request), filter };
      if (!isCsvWanted(request)) return await pageOf(search);
      return await sendCsv(reply, search, request.query.limit);
    },
  });

  server.route({
    method: 'GET',
    url: `${prefix}/summary`,
    onRequest: clients.require(access),
    schema: {
      ...{ ...sum, ...common, description: summaryDescription, querystring: summaryQuery },
      response: responses('The summary', callsSummarySchema, problems),
    },
    handler: async (request) =>
      await calls.summary(await scopeOf(request), toSummaryRequest(request.query, new Date())),
  });

  server.route({
    method: 'GET',
    url: `${prefix}/callers`,
    onRequest: clients.require(access),
    schema: {
      ...{ ...callers, ...common, description: callersDescription, querystring: callersQuery },
      response: responses('The caller IDs', callersSummarySchema, problems),
    },
    handler: async (request) =>
      await calls.callers(await scopeOf(request), toCallersRequest(request.query, new Date())),
  });
}

function listResponses(problems: readonly ProblemStatus[]) {
  const { 200: page, ...others } = responses('A page of calls', callPageSchema, problems);
  const content = { ...page.content, 'text/csv': { schema: z.string() } };
  return { 200: { ...page, content }, ...others };
}

// ── Pages ────────────────────────────────────────────────────────────────────────────────────────

type Search = {
  readonly calls: CallQueries;
  readonly scope: CallScope | AppScope;
  readonly filter: CallFilter;
};

async function pageOf({ calls, scope, filter }: Search): Promise<CallPage> {
  const page = await calls.list(scope, filter);
  if (page === 'bad-cursor') throw badCursor();
  return page;
}

// ── CSV ──────────────────────────────────────────────────────────────────────────────────────────

/** The bounds of one CSV file, after which the client continues with the cursor. */
const maxCsvCalls = 100_000;
const maxCsvMs = 60_000;
/** For the page that has begun when `maxCsvMs` is over, and the line after it. */
const lastPageMs = 15_000;

function isCsvWanted({ query, headers }: { query: ListQuery; headers: FastifyRequest['headers'] }) {
  const { format } = query;
  return format === undefined
    ? acceptedType(headers.accept, listTypes) === 'text/csv'
    : format === 'csv';
}

/** Reads the first page before it begins the response, so that an error has its status. */
async function sendCsv(
  reply: FastifyReply,
  search: Search,
  maxCalls = maxCsvCalls,
): Promise<FastifyReply> {
  const limit = Math.min(maxCalls, maxPageCalls);
  const first = await pageOf({ ...search, filter: { ...search.filter, limit } });
  void reply.headers({
    'content-type': 'text/csv; charset=utf-8; header=present',
    'content-disposition': 'attachment; filename="calls.csv"',
  });
  return await reply.send(Readable.from(csvPages(search, first, maxCalls)));
}

/** Yields one page at a time, when the client has read the one before. */
async function* csvPages(
  search: Search,
  first: CallPage,
  maxCalls: number,
): AsyncGenerator<string> {
  const until = performance.now() + maxCsvMs;
  yield csvHeader;
  let page = first;
  let left = maxCalls;
  for (;;) {
    const { calls, nextCursor } = page;
    if (calls.length > 0) yield calls.map(csvOfCall).join('');
    left -= calls.length;
    if (nextCursor === undefined) return;
    if (left <= 0 || performance.now() > until) {
      yield `# nextCursor=${nextCursor}\r\n`;
      return;
    }
    const limit = Math.min(left, maxPageCalls);
    page = await pageOf({ ...search, filter: { ...search.filter, limit, cursor: nextCursor } });
  }
}
