// Reads the history. We read a page's messages from an index that has the same order as the
// response, and send the stored JSON text without parsing it.

import type { Database } from '../../store/database.ts';
import type { Sql } from '../../store/sql.ts';
import type { HistoryQuery } from './history-request.ts';
import {
  botsStatement,
  countStatement,
  type Direction,
  type HistoryScope,
  pageStatement,
  positionStatement,
  type Start,
  sessionsStatement,
} from './history-statements.ts';

export type HistoryPage = {
  readonly total: number;
  readonly moreAvailable: boolean;
  /** Messages as JSON text. */
  readonly messages: readonly string[];
};

export type HistoryReader = {
  /** @returns undefined if the message to start from doesn't exist */
  read(scope: HistoryScope, query: HistoryQuery): Promise<HistoryPage | undefined>;
  /** Returns the ids of all the account's bots that have messages. */
  botsOf(accountId: string): Promise<readonly string[]>;
};

/** The maximum number of rows per statement, which bounds the rows that are in memory twice. */
const chunkRows = 1_000;
/**
 * Limits the size of a page. Ten thousand messages usually take about 5 MB. If the messages are
 * very large, the page ends early and `moreAvailable` is true.
 */
const maxPageCharacters = 32 * 1_024 * 1_024;
/**
 * Limits the search for sessions to skip. The search reads `chunkRows` messages, plus this many
 * messages for each session. Each retry reads `lookFurther` times as many messages.
 */
const messagesPerSession = 16;
const lookFurther = 8;

type Row = {
  readonly at: string;
  readonly message_id: string;
  readonly document: string;
  readonly trace_id?: string | null;
  readonly agent_info?: string | null;
  readonly secure_form?: string | null;
};
type Walk = { readonly rows: readonly Row[]; readonly more: boolean };
type Select = <Found extends object>(statement: Sql) => Promise<readonly Found[]>;

export function createHistoryReader(
  { reads }: Pick<Database, 'reads'>,
  clock: { now(): Date },
): HistoryReader {
  const selectOf =
    (accountId: string): Select =>
    // The caller supplies the row type, which must match its statement.
    async <Found extends object>(statement: Sql) =>
      (await reads(accountId).query<Found>(statement)).rows;
  return {
    async read(scope, query) {
      const select = selectOf(scope.accountId);
      const [page, [count]] = await Promise.all([
        readPage(select, scope, query, clock.now()),
        select<{ total: string }>(countStatement(scope, query)),
      ]);
      return page === undefined ? undefined : { ...page, total: Number(count?.total ?? 0) };
    },
    async botsOf(accountId) {
      const rows = await selectOf(accountId)<{ bot_id: string }>(botsStatement(accountId));
      return rows.map((row) => row.bot_id);
    },
  };
}

const nothing: Walk = { rows: [], more: false };

async function readPage(
  select: Select,
  scope: HistoryScope,
  query: HistoryQuery,
  now: Date,
): Promise<Omit<HistoryPage, 'total'> | undefined> {
  const { limit, oldestFirst, start } = query;
  const [position] =
    start === undefined
      ? []
      : await select<Omit<Start, 'included'>>(positionStatement(scope, start.messageId));
  if (start !== undefined && position === undefined) return undefined;
  const direction = start?.direction ?? (oldestFirst ? 1 : -1);
  const walk = (way: Direction, included: boolean) =>
    walkMessages(select, scope, query, {
      way,
      now,
      ...(position === undefined ? {} : { start: { ...position, included } }),
    });
  // With both directions, the message `msgId` belongs to the older side. Each side gets half the
  // page, but if one side doesn't have enough messages, the other side gets the rest.
  const older = direction <= 0 ? await walk('older', true) : nothing;
  const newer = direction >= 0 ? await walk('newer', direction > 0) : nothing;
  const half = Math.floor(limit / 2);
  const newerCount = Math.min(newer.rows.length, Math.max(half, limit - older.rows.length));
  const olderCount = Math.min(older.rows.length, limit - newerCount);
  const oldToNew = [
    ...older.rows.slice(0, olderCount).reverse(),
    ...newer.rows.slice(0, newerCount),
  ];
  const left = older.rows.length - olderCount + newer.rows.length - newerCount;
  return {
    messages: (oldestFirst ? oldToNew : oldToNew.reverse()).map(textOf),
    moreAvailable: older.more || newer.more || left > 0,
  };
}

type Way = { readonly way: Direction; readonly now: Date; readonly start?: Start };

/** Returns up to a page of messages, nearest first. */
async function walkMessages(
  select: Select,
  scope: HistoryScope,
  query: HistoryQuery,
  way: Way,
): Promise<Walk> {
  const { limit } = query;
  const skipped = await sessionsToSkip(select, scope, query, way);
  const rows: Row[] = [];
  let characters = 0;
  let next = way;
  for (;;) {
    const wanted = Math.min(limit + 1 - rows.length, chunkRows);
    const found = await select<Row>(
      pageStatement(scope, query, { ...next, skipped, rows: wanted }),
    );
    for (const row of found) {
      if (rows.length === limit || characters > maxPageCharacters) return { rows, more: true };
      rows.push(row);
      characters += textOf(row).length;
    }
    const last = found.at(-1);
    if (last === undefined || found.length < wanted) return { rows, more: false };
    next = { ...way, start: { ...last, included: false } };
  }
}

/** Returns the first sessions in this direction, found among the nearest messages. */
async function sessionsToSkip(
  select: Select,
  scope: HistoryScope,
  query: HistoryQuery,
  way: Way,
): Promise<readonly string[]> {
  const { skipSessions: sessions } = query;
  if (sessions === 0) return [];
  for (let rows = chunkRows + sessions * messagesPerSession; ; rows *= lookFurther) {
    const found = await select<{ session_id: string; seen: string }>(
      sessionsStatement(scope, query, { ...way, rows, sessions }),
    );
    if (found.length === sessions || Number(found[0]?.seen ?? 0) < rows) {
      return found.map((row) => row.session_id);
    }
  }
}

function textOf({ document, trace_id, agent_info, secure_form }: Row): string {
  const extras = Object.entries({
    traceId: trace_id,
    agentInfo: agent_info,
    secureForm: secure_form,
  })
    .filter(([, json]) => json !== undefined && json !== null)
    .map(([name, json]) => `,"${name}":${json}`);
  return extras.length === 0 ? document : `${document.slice(0, -1)}${extras.join('')}}`;
}
