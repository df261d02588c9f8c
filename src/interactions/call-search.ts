// Finds the calls of a page, newest first, without ever scanning the table. A request examines a
// bounded number of rows in the order of an index. If that isn't enough to fill the page, the page
// says which period was searched, and its cursor continues from there, even if it has no calls.
//
// - `callIdPrefix`, `idempotencyKey`, `number` and `campaign` are keys of indexes. If a filter has
//   several of them, the first one chooses the index, and we check the others row by row.
// - Calls that haven't been settled have two indexes of their own, one for those that wait for a
//   calling rule. They find all calls that are waiting or up, also those of a campaign, whose other
//   calls may be many.
// - For an outcome, a verdict or the status of an ended call, the totals say which quarters of an
//   hour have matching settled calls. All others are skipped. A value that no call has is therefore
//   found out in a moment.
// - All other searches, e.g. for metadata, examine the calls of each bot.
//
// Rows are examined in windows that grow while the time allows, because a row takes microseconds in
// memory, but a hundred times as long on a slow disk.

import { callOutcomes, callStates } from '../calls/contract/call-words.ts';
import { amdEventNames } from '../calls/detection/amd-event.ts';
import { slotMs } from '../store/calls/call-slots.ts';
import type { Queries } from '../store/queries.ts';
import { all, type Sql, sql } from '../store/sql.ts';
import {
  botsOf,
  inScope,
  type KeyFilter,
  keyConditions,
  otherConditions,
} from './call-conditions.ts';
import type { AppScope, CallFilter, CallScope } from './call-queries.ts';

/** The bounds of one request. */
export type SearchBounds = {
  /** Rows in the first window, shared by all bots. */
  readonly firstRows: number;
  /** Further windows are examined until a request has examined this many rows. */
  readonly maxRows: number;
  /** No further window begins after this time. */
  readonly budgetMs: number;
};

const defaultBounds: SearchBounds = { firstRows: 1_000, maxRows: 20_000, budgetMs: 80 };
/** Rows of each bot in a window, even if the account has very many bots. */
const minRowsPerBot = 50;
const windowGrowth = 4;
/**
 * A few thousand calls are unsettled at most, unless NATS has been away for long or very many wait
 * for a calling rule.
 */
const maxUnsettledRows = 5_000;

export type FoundCalls = {
  readonly callIds: readonly string[];
  readonly nextCursor?: string;
  readonly searched: { readonly from?: string; readonly to?: string };
};

export async function findCalls(
  queries: Queries,
  scope: CallScope | AppScope,
  filter: CallFilter,
  bounds: SearchBounds = defaultBounds,
): Promise<FoundCalls | 'bad-cursor'> {
  const cursor = filter.cursor === undefined ? undefined : readCursor(filter.cursor);
  if (filter.cursor !== undefined && cursor === undefined) return 'bad-cursor';
  const { acceptedFrom, acceptedTo } = filter;
  const start = older(cursor, acceptedTo && beginningOf(acceptedTo));
  const botIds = sourceOf(filter) === 'bots' ? await readBots(queries, scope) : [];
  const search = { queries, scope, filter, bounds, botIds };
  const { found, end } = await searchFrom(search, start);
  const page = found.slice(0, filter.limit);
  const last = page.at(-1);
  const next = found.length > page.length ? last : end;
  const from = next?.acceptedAt ?? acceptedFrom;
  return {
    callIds: page.map(({ callId }) => callId),
    ...(next === undefined ? {} : { nextCursor: writeCursor(next) }),
    searched: {
      ...(from === undefined ? {} : { from: from.toISOString() }),
      ...(start === undefined ? {} : { to: start.acceptedAt.toISOString() }),
    },
  };
}

type Search = {
  readonly queries: Queries;
  readonly scope: CallScope | AppScope;
  readonly filter: CallFilter;
  readonly bounds: SearchBounds;
  /** The bots whose calls the client may read. Empty if the search uses another index. */
  readonly botIds: readonly string[];
};

/**
 * The newest matching calls, at least `limit + 1` if there are as many. `end` is the position where
 * the search stopped. Undefined if it has reached the oldest call.
 */
type Result = { readonly found: readonly Position[]; readonly end: Position | undefined };

async function searchFrom(search: Search, start: Position | undefined): Promise<Result> {
  const { filter, bounds } = search;
  const source = sourceOf(filter);
  const totals = canSkip(filter, source) ? { source, oldest: await oldestCall(search) } : undefined;
  const budget = budgetOf(bounds);
  // Calls may settle at any time, so we look at the unsettled ones first. Otherwise we might miss a
  // call that settles in between.
  const unsettled = totals === undefined ? nothing : await examineUnsettled(search, start);
  const byId = new Map(unsettled.found.map((one) => [one.callId, one]));
  let end = start;
  for (;;) {
    const whole = { before: end, from: undefined, rows: budget.rows() };
    const window = totals === undefined ? whole : await skipTo(search, totals, whole);
    const examined = await examine(search, source, window);
    for (const one of examined.found) byId.set(one.callId, one);
    end = endOf(examined, window);
    budget.spend(examined);
    // Beyond the end of the unsettled calls, we don't know all matches.
    const reached = newer(end, unsettled.end);
    const found = [...byId.values()].filter((one) => isWithin(one, reached));
    const isPageFull = found.length > filter.limit;
    if (end === undefined || reached !== end || isPageFull || budget.isSpent())
      return { found: found.sort(compare), end: reached };
  }
}

/** A window that isn't full has been examined down to its beginning. */
function endOf({ end }: Examined, window: Window | undefined): Position | undefined {
  return end ?? (window?.from && beginningOf(window.from));
}

const nothing: Examined = { found: [], end: undefined, examined: 0 };

/**
 * The rows and the time that a request may still use. A window only grows if the one before it was
 * so fast that the larger one fits the time as well.
 */
function budgetOf({ firstRows, maxRows, budgetMs }: SearchBounds) {
  const startedAt = performance.now();
  let windowAt = startedAt;
  let rows = firstRows;
  let total = 0;
  return {
    rows: () => rows,
    spend({ examined, end }: Examined): void {
      const now = performance.now();
      const mayGrow = end !== undefined && now - windowAt < budgetMs / (2 * windowGrowth);
      if (mayGrow) rows = Math.min(rows * windowGrowth, maxRows);
      windowAt = now;
      total += examined;
    },
    isSpent: () => total >= maxRows || performance.now() - startedAt > budgetMs,
  };
}

// ── Where to look ────────────────────────────────────────────────────────────────────────────────

type Source = KeyFilter | 'unsettled' | 'bots';

const keys: readonly KeyFilter[] = ['callIdPrefix', 'idempotencyKey', 'number', 'campaign'];
const settledStatuses = ['completed', 'failed', 'machineDetected'] as const;

function keyOf(filter: CallFilter): KeyFilter | undefined {
  return keys.find((key) => filter[key] !== undefined);
}

function sourceOf(filter: CallFilter): Source {
  const { state = 'ended', status = 'completed' } = filter;
  const isOpen = state !== 'ended' || callStates.some((open) => open === status);
  const key = keyOf(filter);
  return isOpen && (key ?? 'campaign') === 'campaign' ? 'unsettled' : (key ?? 'bots');
}

/** Whether the totals tell where settled calls with this outcome, verdict or status are. */
function canSkip({ outcome, verdict, status }: CallFilter, source: Source): boolean {
  const isInTotals = [outcome, verdict, status].some((value) => value !== undefined);
  return isInTotals && (source === 'bots' || source === 'campaign');
}

type Totals = { readonly source: Source; readonly oldest: Date | undefined };

/** Slots of the totals that we read at once, for each outcome, status and verdict. */
const maxSlots = 64;
/** We examine a gap between slots rather than skip it if it isn't longer than this. */
const maxGapMs = 4 * slotMs;

/**
 * Returns when the oldest call of the period was accepted. The totals go back much further than the
 * calls, so without this, a search would go on through periods whose calls have been deleted.
 *
 * @returns undefined if there are no calls
 */
async function oldestCall({ queries, filter }: Search): Promise<Date | undefined> {
  const { rows } = await queries.query<{ oldest: Date | null }>(
    sql`select greatest(min(accepted_at), ${filter.acceptedFrom ?? null}) as oldest from calls`,
  );
  return rows[0]?.oldest ?? undefined;
}

/**
 * Moves a window to the newest quarters of an hour that may have matching calls.
 *
 * @returns undefined if no settled call before the window matches
 */
async function skipTo(
  search: Search,
  { source, oldest }: Totals,
  window: Window,
): Promise<Window | undefined> {
  const slots = oldest === undefined ? [] : await newestSlots(search, window.before, oldest);
  const [newest] = slots;
  if (oldest === undefined || newest === undefined) return undefined;
  const before = older(window.before, beginningOf(new Date(newest.getTime() + slotMs)));
  const from = beginningOfRun(slots, newest);
  // A campaign may be small, so we don't stop at gaps.
  return { ...window, before, ...(source === 'bots' && from > oldest && { from }) };
}

/** Returns the oldest slot that no long gap separates from the newest one. */
function beginningOfRun(slots: readonly Date[], newest: Date): Date {
  let first = newest;
  for (const slot of slots) {
    if (first.getTime() - slot.getTime() > maxGapMs) break;
    first = slot;
  }
  return first;
}

/** Finds the newest quarters of an hour that have settled calls which may match. */
async function newestSlots(
  { queries, scope, filter }: Search,
  before: Position | undefined,
  oldest: Date,
): Promise<readonly Date[]> {
  const { outcome, status, verdict } = filter;
  const isExclusive = before?.callId === '';
  const period = all([
    inScope(scope),
    sql`slot > ${new Date(oldest.getTime() - slotMs)}`,
    before && (isExclusive ? sql`slot < ${before.acceptedAt}` : sql`slot <= ${before.acceptedAt}`),
  ]);
  const { rows } = await queries.query<{ slot: Date }>(sql`
    select distinct newest.slot
    from unnest(${outcome === undefined ? callOutcomes : [outcome]}::text[]) as o (outcome)
    cross join unnest(${status === undefined ? settledStatuses : [status]}::text[]) as s (status)
    cross join unnest(${verdict === undefined ? ['', ...amdEventNames] : [verdict]}::text[]) as v (verdict)
    cross join lateral (
      select slot from call_totals t
      where t.outcome = o.outcome and t.status = s.status and t.verdict = v.verdict and ${period}
      order by slot desc limit ${maxSlots}
    ) as newest
    order by newest.slot desc`);
  return rows.map(({ slot }) => slot);
}

// ── Windows ──────────────────────────────────────────────────────────────────────────────────────

type Window = {
  readonly before: Position | undefined;
  readonly from: Date | undefined;
  readonly rows: number;
};

type Examined = Result & { readonly examined: number };

type WindowColumns = {
  readonly examined: number;
  readonly last_at: Date | null;
  readonly last_id: string | null;
  readonly found_ids: readonly string[] | null;
  readonly found_at: readonly Date[] | null;
};

async function examine(
  search: Search,
  source: Source,
  window: Window | undefined,
): Promise<Examined> {
  if (window === undefined) return nothing;
  const { scope, filter } = search;
  if (source === 'bots') return await examineBots(search, window);
  if (source === 'unsettled') return await examineUnsettled(search, window.before, window.rows);
  const others = keys.filter((key) => key !== source).flatMap((key) => conditionOf(filter, key));
  const inSource = all([sql`account_id = ${scope.accountId}`, ...conditionOf(filter, source)]);
  const matches = all([inScope(scope), ...others, ...otherConditions(filter)]);
  return await examineOne(search, windowOf(search, { inSource, matches }, window), window.rows);
}

async function examineUnsettled(
  search: Search,
  before: Position | undefined,
  rows = maxUnsettledRows,
): Promise<Examined> {
  const { scope, filter } = search;
  const inKeys = keys.flatMap((key) => conditionOf(filter, key));
  const matches = all([inScope(scope), ...inKeys, ...otherConditions(filter)]);
  const window = { before, from: undefined, rows };
  // Calls that wait for a calling rule have an index of their own.
  const open = sql`end_published_at is null and not_before is null`;
  const held = sql`account_id = ${scope.accountId} and not_before is not null`;
  const [ofOpen, ofHeld] = [open, held].map((inSource) =>
    windowOf(search, { inSource, matches }, window),
  ) as [Sql, Sql];
  const result = await search.queries.query<WindowColumns>(sql`${ofOpen} union all ${ofHeld}`);
  return merge(result.rows, rows);
}

async function examineOne({ queries }: Search, window: Sql, rows: number): Promise<Examined> {
  const result = await queries.query<WindowColumns>(window);
  return merge(result.rows, rows);
}

/** Examines the newest calls of each bot, because the index is ordered by bot. */
async function examineBots(search: Search, window: Window): Promise<Examined> {
  const { queries, scope, filter, botIds } = search;
  if (botIds.length === 0) return nothing;
  const conditions = otherConditions(filter);
  const share = Math.floor(window.rows / botIds.length);
  // Without conditions, every row matches.
  const rows = conditions.length === 0 ? filter.limit + 1 : Math.max(share, minRowsPerBot);
  const inSource = sql`account_id = ${scope.accountId} and calls.bot_id = bot.bot_id`;
  const newest = windowOf(search, { inSource, matches: all(conditions) }, { ...window, rows });
  const result = await queries.query<WindowColumns>(sql`
    select newest.* from unnest(${botIds}::text[]) as bot (bot_id)
    cross join lateral (${newest}) as newest`);
  return merge(result.rows, rows);
}

async function readBots(queries: Queries, scope: CallScope | AppScope): Promise<readonly string[]> {
  if ('botId' in scope) return [scope.botId];
  if (scope.botIds !== 'all') return [...new Set(scope.botIds)];
  const { rows } = await queries.query<{ bot_id: string }>(botsOf(scope.accountId));
  return rows.map((row) => row.bot_id);
}

function conditionOf(filter: CallFilter, key: KeyFilter): readonly Sql[] {
  const value = filter[key];
  return value === undefined ? [] : [keyConditions[key](value)];
}

/**
 * Examines the newest rows of a source. The rows come out of the innermost query in order, and
 * `array_agg` keeps that order.
 */
function windowOf(
  { filter: { acceptedFrom, limit } }: Search,
  { inSource, matches }: { readonly inSource: Sql; readonly matches: Sql },
  { before, from = acceptedFrom, rows }: Window,
): Sql {
  const period = all([
    inSource,
    acceptedFrom && sql`accepted_at >= ${acceptedFrom}`,
    from && sql`accepted_at >= ${from}`,
    before && isBefore(before),
  ]);
  const first = limit + 1;
  return sql`
    select count(*)::integer as examined,
      (array_agg(accepted_at))[count(*)::integer] as last_at,
      (array_agg(call_id))[count(*)::integer] as last_id,
      (array_agg(call_id) filter (where matches))[1:${first}::integer] as found_ids,
      (array_agg(accepted_at) filter (where matches))[1:${first}::integer] as found_at
    from (
      select accepted_at, call_id, ${matches} as matches from calls
      where ${period} order by accepted_at desc, call_id desc limit ${rows}
    ) as examined`;
}

/**
 * Merges the windows of several bots. Where a window is full, the bot has further calls, so the
 * search has only reached the newest of these ends.
 */
function merge(windows: readonly WindowColumns[], rows: number): Examined {
  let end: Position | undefined;
  for (const { examined, last_at: acceptedAt, last_id: callId } of windows) {
    if (examined < rows || acceptedAt === null || callId === null) continue;
    end = newer(end, { acceptedAt, callId });
  }
  const reached = end;
  const found = windows.flatMap(({ found_ids: ids, found_at: times }) =>
    (ids ?? []).flatMap((callId, index) => {
      const acceptedAt = times?.[index];
      return acceptedAt === undefined ? [] : [{ acceptedAt, callId }];
    }),
  );
  return {
    found: found.filter((one) => isWithin(one, reached)),
    end,
    examined: windows.reduce((sum, { examined }) => sum + examined, 0),
  };
}

// ── Positions ────────────────────────────────────────────────────────────────────────────────────
// Calls are listed in the order (accepted_at, call_id), newest first. A cursor names the position
// of the last call that was examined. Calls accepted later are newer, so they don't shift the pages
// that follow.

type Position = {
  readonly acceptedAt: Date;
  /** Empty for the position after all calls that were accepted at `acceptedAt` or later. */
  readonly callId: string;
};

function beginningOf(acceptedAt: Date): Position {
  return { acceptedAt, callId: '' };
}

/** Orders newer positions first. */
function compare(one: Position, other: Position): number {
  const byTime = other.acceptedAt.getTime() - one.acceptedAt.getTime();
  if (byTime !== 0) return byTime;
  return one.callId === other.callId ? 0 : one.callId > other.callId ? -1 : 1;
}

function isWithin(one: Position, end: Position | undefined): boolean {
  return end === undefined || compare(one, end) <= 0;
}

function newer(one: Position | undefined, other: Position | undefined): Position | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return compare(one, other) <= 0 ? one : other;
}

function older(one: Position | undefined, other: Position | undefined): Position | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return compare(one, other) <= 0 ? other : one;
}

function isBefore({ acceptedAt, callId }: Position): Sql {
  return callId === ''
    ? sql`accepted_at < ${acceptedAt}::timestamptz`
    : sql`(accepted_at, call_id) < (${acceptedAt}::timestamptz, ${callId})`;
}

function writeCursor({ acceptedAt, callId }: Position): string {
  return Buffer.from(`${acceptedAt.getTime()}.${callId}`).toString('base64url');
}

function readCursor(text: string): Position | undefined {
  const parts = /^(\d{1,14})\.(call-[0-9A-Za-z-]{1,64}|)$/.exec(
    Buffer.from(text, 'base64url').toString('latin1'),
  );
  if (parts?.[1] === undefined || parts[2] === undefined) return undefined;
  return { acceptedAt: new Date(Number(parts[1])), callId: parts[2] };
}
