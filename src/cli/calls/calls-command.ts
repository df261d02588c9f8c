// Implements `offhook calls list`, `offhook calls show` and `offhook context`, which read calls.
// They include all of the app's bots, unless the command names a bot.

import { lineOf } from '../../calls/contract/event-table.ts';
import { csvHeader, csvOfCall } from '../../interactions/call-csv.ts';
import type { CallPage, CallSummary } from '../../interactions/call-queries.ts';
import { type AppOptions, withGateway } from '../app-session.ts';
import type { CliContext } from '../cli-context.ts';
import { CliError } from '../cli-error.ts';
import type { OverviewClient } from '../gateway-client.ts';
import { callLine } from './call-line.ts';
import { botOfCall, findCallId } from './named-call.ts';

/** The options that select calls. They have the names of the query's parameters. */
type FilterOptions = {
  readonly status?: string;
  readonly state?: string;
  readonly outcome?: string;
  readonly verdict?: string;
  readonly number?: string;
  readonly campaign?: string;
  /** `name=value` */
  readonly metadata?: readonly string[];
} & PeriodOptions;

export type PeriodOptions = {
  readonly day?: string;
  readonly timeZone?: string;
  readonly from?: string;
  readonly to?: string;
};

export type ListCallsOptions = AppOptions &
  FilterOptions & { readonly limit: string; readonly json?: boolean; readonly csv?: boolean };
export type ShowCallOptions = AppOptions & { readonly json?: boolean };

/** The search ends if it finds no call for this long. */
const maxSearchMs = 30_000;

export async function listCalls(context: CliContext, options: ListCallsOptions): Promise<void> {
  if (!/^[1-9]\d{0,5}$/.test(options.limit)) throw new CliError('--limit must be 1 to 999999');
  const query = queryOf(options);
  const format = formatOf(options);
  await withGateway(context, options, async (client) => {
    if (options.csv === true) context.print(csvHeader.trimEnd());
    const pages = pagesOf(client.overview(options.bot), query);
    const { count, more, last } = await printCalls(context, pages, format, Number(options.limit));
    if (context.interrupted.aborted) return;
    if (more) context.note('There may be more calls; raise --limit to list them.');
    else if (last?.nextCursor !== undefined) context.note(describeUnfinished(last, options));
    else if (count === 0) context.note('No calls.');
  });
}

/**
 * Prints up to `limit` calls. `more` says that the list may go on. We don't search for the next
 * call only to find that out, because a search can take long.
 */
export async function printCalls(
  context: Pick<CliContext, 'print' | 'interrupted'>,
  pages: AsyncIterable<CallPage>,
  format: (call: CallSummary) => string,
  limit: number,
): Promise<{ readonly count: number; readonly more: boolean; readonly last?: CallPage }> {
  let count = 0;
  let last: CallPage | undefined;
  for await (const page of pages) {
    const shown = page.calls.slice(0, limit - count);
    for (const call of shown) context.print(format(call));
    count += shown.length;
    last = page;
    const isFull = count === limit;
    const more = shown.length < page.calls.length || (isFull && page.nextCursor !== undefined);
    if (more || context.interrupted.aborted) return { count, more };
  }
  return { count, more: false, ...(last === undefined ? {} : { last }) };
}

/** Says how to continue a search that was given up. */
export function describeUnfinished(
  { searched: { from } }: Pick<CallPage, 'searched'>,
  { day }: Pick<PeriodOptions, 'day'>,
): string {
  const seconds = maxSearchMs / 1_000;
  const ended = `The search found no more calls for ${seconds} s, and ended.`;
  if (from === undefined) return ended;
  // The last call may share its millisecond with others, and `--to` excludes its own.
  const to = new Date(Date.parse(from) + 1).toISOString();
  const how =
    day === undefined
      ? `add --to ${to}`
      : `replace --day by --from, for its beginning, and --to ${to}`;
  return `${ended} To continue it, ${how}.`;
}

/** Yields page by page. Pages without calls may come before others. */
async function* pagesOf(
  overview: OverviewClient,
  query: Readonly<Record<string, string>>,
): AsyncGenerator<CallPage> {
  let cursor: string | undefined;
  let foundAt = performance.now();
  do {
    const page = await overview.calls({ ...query, ...(cursor === undefined ? {} : { cursor }) });
    if (page.calls.length > 0) foundAt = performance.now();
    cursor = page.nextCursor;
    yield page;
  } while (cursor !== undefined && performance.now() - foundAt < maxSearchMs);
}

function formatOf({ json, csv }: ListCallsOptions): (call: CallSummary) => string {
  if (json === true && csv === true) throw new CliError('--json and --csv exclude each other');
  if (csv === true) return (call) => csvOfCall(call).trimEnd();
  return json === true ? JSON.stringify : (call) => callLine(call, new Date());
}

function queryOf(options: FilterOptions): Readonly<Record<string, string>> {
  const { status, state, outcome, verdict, number, campaign, metadata = [] } = options;
  const given = { status, state, outcome, verdict, number, campaign };
  return {
    ...withoutAbsent(given),
    ...periodQuery(options),
    ...Object.fromEntries(metadata.map(metadataQuery)),
  };
}

export function periodQuery(options: PeriodOptions): Readonly<Record<string, string>> {
  const { day, timeZone, from, to } = options;
  return withoutAbsent({ day, timeZone, from, to });
}

function withoutAbsent(
  members: Readonly<Record<string, string | undefined>>,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(members).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value]],
    ),
  );
}

function metadataQuery(text: string): readonly [string, string] {
  const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
  if (name === undefined || value === undefined) {
    throw new CliError('--metadata must be name=value');
  }
  return [`metadata[${name}]`, value];
}

export async function showCall(
  context: CliContext,
  named: string,
  options: ShowCallOptions,
): Promise<void> {
  await withGateway(context, options, async (client) => {
    const overview = client.overview(options.bot);
    const call = await overview.call(await findCallId(overview, named));
    if (options.json === true) {
      context.print(JSON.stringify(call));
      return;
    }
    context.print(callLine(call, new Date()));
    const { queuePosition, waitsFor, metadata, timeline } = call;
    if (queuePosition !== undefined)
      context.print(`waits for its trunk at position ${queuePosition}`);
    if (waitsFor !== undefined)
      context.print(`waits for the calling rule ${waitsFor.rule} until ${waitsFor.until}`);
    if (Object.keys(metadata).length > 0) context.print(`metadata ${JSON.stringify(metadata)}`);
    for (const { time, type, data } of timeline) {
      context.print(`${time}  ${type.padEnd(9)}  ${lineOf(type, data)}`.trimEnd());
    }
  });
}

/** Prints a call's context the way a bot flow reads it. */
export async function showContext(
  context: CliContext,
  named: string,
  options: AppOptions,
): Promise<void> {
  await withGateway(context, options, async (client) => {
    const { bot, callId } = await botOfCall(client, options, named);
    context.print(JSON.stringify(await bot.context(callId), undefined, 2));
  });
}
